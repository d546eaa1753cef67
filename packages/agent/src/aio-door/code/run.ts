import type { RunResult } from "@agentfense/sdk";
import { runPlan } from "../../executors/run-plan.ts";
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

/** Runs code in an interpreter of its own. */
export async function runOnce(
  { sandbox, request }: AioCall,
  code: { readonly language: "python" | "javascript"; readonly code: string },
  { cwd, timeoutMs }: { readonly cwd?: string | undefined; readonly timeoutMs: number | undefined },
): Promise<CodeResult> {
  const plan = await runPlan(code.language, code.code);
  if (plan.kind !== "program")
    return resultOf({ stdout: "", stderr: "it cannot be run", exitCode: 1, timedOut: false });
  const options = { stdin: plan.stdin, workdir: workingDirectory(cwd), timeoutMs, signal: request.signal };
  return resultOf(await sandbox.run(plan.argv, options));
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
