import { z } from "zod";
import type { RunResult } from "../../model/records.ts";
import { keepEnds } from "./bounds.ts";
import { declareTool } from "./declaration.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 600_000;

export const shell = declareTool({
  description:
    "Runs a command line in the shell of the sandbox and gives its output and exit code. It starts in /workspace, " +
    "where the project is; every call is a shell of its own. There may be no network, and some files cannot be seen or written.",
  input: z.strictObject({
    command: z.string().min(1).describe("The command line"),
    timeout_ms: z
      .int()
      .min(1)
      .max(MAX_TIMEOUT_MS)
      .optional()
      .describe(`Ended after this many milliseconds; default ${DEFAULT_TIMEOUT_MS}`),
    workdir: z.string().min(1).optional().describe("Where to run it, relative to /workspace; default /workspace"),
  }),
  readOnly: false,
  run: async ({ command, timeout_ms: timeoutMs = DEFAULT_TIMEOUT_MS, workdir }, { sandbox, maxOutput, signal }) => {
    const result = await sandbox.run(command, { timeoutMs, workdir, signal });
    const output = keepEnds(outputOf(result), maxOutput);
    return [...(output === "" ? [] : [output]), ...remarksOn(result, timeoutMs)].join("\n") || "(no output)";
  },
});

function outputOf({ stdout, stderr }: RunResult): string {
  const parts = [stdout.trimEnd(), stderr === "" ? "" : `[stderr]\n${stderr.trimEnd()}`];
  return parts.filter((part) => part !== "").join("\n");
}

function remarksOn(result: RunResult, timeoutMs: number): string[] {
  return [
    ...(result.truncated ? ["[some output was beyond the limit and is lost]"] : []),
    ...(result.outOfMemory ? ["[it ran out of memory]"] : []),
    ...(result.timedOut ? [`[ended after ${timeoutMs} ms: its time was up]`] : []),
    ...(result.success || result.timedOut ? [] : [`[exit code ${result.exitCode}]`]),
  ];
}
