import { execFile } from "node:child_process";

interface ProgramResult {
  /** Undefined: it did not start, or did not end in time. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

const PATIENCE_MS = 5_000;

/** Runs a short program to its end and never fails. */
export function runProgram(
  path: string,
  args: readonly string[],
  identity: { readonly uid?: number; readonly gid?: number } = {},
): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const options = {
      ...identity,
      timeout: PATIENCE_MS,
      killSignal: "SIGKILL",
      cwd: "/",
      env: { LC_ALL: "C" },
    } as const;
    try {
      const child = execFile(path, args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (child.exitCode ?? undefined), stdout, stderr });
      });
    } catch (error) {
      resolve({ code: undefined, stdout: "", stderr: (error as Error).message });
    }
  });
}
