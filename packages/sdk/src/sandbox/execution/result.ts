import type { CommandEnd, RunResult } from "../../model/records.ts";

/** Of a command that was told to die: the server says nothing more about it. */
export function killedEnd(durationMs: number): CommandEnd {
  return {
    exitCode: 128 + 9,
    signal: "SIGKILL",
    timedOut: false,
    outOfMemory: false,
    durationMs,
    sessionClosed: false,
    syncedVersion: 0,
    syncProblems: [],
  };
}

export function runResult(parts: {
  readonly command: string;
  readonly end: CommandEnd;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly truncated: boolean;
}): RunResult {
  const { command, end, stdout, stderr, truncated } = parts;
  return {
    ...end,
    command,
    success: end.exitCode === 0 && !end.timedOut,
    stdout: new TextDecoder("utf-8", { ignoreBOM: true }).decode(stdout),
    stderr: new TextDecoder("utf-8", { ignoreBOM: true }).decode(stderr),
    stdoutBytes: stdout,
    stderrBytes: stderr,
    truncated,
  };
}
