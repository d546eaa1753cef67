import { execFile } from "node:child_process";
import { access, constants, realpath } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** Where administrators' programs are, which an ordinary user's PATH may leave out. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** The real path of a program. */
export async function findProgram(name: string): Promise<string | undefined> {
  const directories = [...(process.env.PATH ?? "").split(delimiter).filter(Boolean), ...SYSTEM_DIRECTORIES];
  for (const directory of directories) {
    const path = join(directory, name);
    try {
      await access(path, constants.X_OK);
      return await realpath(path);
    } catch {
      // Not here.
    }
  }
  return undefined;
}

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
