import type { RunResult } from "@agentfense/sdk";
import { workingDirectory } from "../paths.ts";
import type { AioCall } from "../route.ts";

interface CodeResult {
  readonly status: "ok" | "error" | "timeout";
  readonly stdout: string;
  readonly stderr: string;
  readonly exit_code: number;
  readonly traceback: readonly string[] | null;
  readonly outputs: readonly object[];
}

const KEPT = 1024 * 1024;

/** Each reads the code from its input. Python's output is unbuffered, so that what was printed is known when the time is up. */
const PROGRAMS = { python: ["python3", "-u", "-B", "-"], javascript: ["node", "-"] } as const;

/** Runs code in an interpreter of its own. */
export async function runOnce(
  { sandbox, request }: AioCall,
  code: { readonly language: "python" | "javascript"; readonly code: string },
  { cwd, timeoutMs }: { readonly cwd?: string | undefined; readonly timeoutMs: number | undefined },
): Promise<CodeResult> {
  const options = { stdin: code.code, workdir: workingDirectory(cwd), timeoutMs, signal: request.signal };
  return resultOf(await sandbox.run(PROGRAMS[code.language], options));
}

function resultOf(result: Pick<RunResult, "stdout" | "stderr" | "exitCode" | "timedOut">): CodeResult {
  const [stdout, stderr] = [result.stdout.slice(0, KEPT), result.stderr.slice(0, KEPT)];
  const failed = result.exitCode !== 0;
  const traceback = failed && stderr !== "" ? stderr.trimEnd().split("\n") : null;
  const [ename = "", evalue = ""] = /^([\w.]+): ?(.*)$/.exec(traceback?.at(-1) ?? "")?.slice(1) ?? [];
  return {
    status: result.timedOut ? "timeout" : failed ? "error" : "ok",
    stdout,
    stderr,
    exit_code: result.exitCode,
    traceback,
    outputs: [
      ...(stdout === "" ? [] : [{ output_type: "stream", name: "stdout", text: stdout }]),
      ...(stderr === "" ? [] : [{ output_type: "stream", name: "stderr", text: stderr }]),
      ...(ename === "" ? [] : [{ output_type: "error", ename, evalue, traceback }]),
    ],
  };
}
