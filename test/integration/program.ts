import { execFile, execFileSync } from "node:child_process";
import { rounds } from "../support/rounds.ts";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
}

/** Nothing of the user's configuration, and the same moment in every commit. */
const ENVIRONMENT = {
  HOME: "/nonexistent",
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.org",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.org",
  GIT_AUTHOR_DATE: "2024-01-02T03:04:05Z",
  GIT_COMMITTER_DATE: "2024-01-02T03:04:05Z",
};

/** Ends what hangs, before the test is ended without it. Beside a load a program takes many times what it takes alone. */
const HANG_MS = 500_000 * rounds(1);

/** Runs a program in a directory to its end; never throws for an exit code. */
export function run(cwd: string, command: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const [program = "true", ...args] = command;
  const env = { PATH: process.env.PATH, ...ENVIRONMENT, ...options.env };
  return new Promise((resolve) => {
    const child = execFile(
      program,
      args,
      { cwd, env, timeout: HANG_MS, killSignal: "SIGKILL", maxBuffer: 1 << 26 },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

const SHELL = ["--norc", "-euo", "pipefail", "-c"];

/** Runs a shell script that must succeed, and gives what it printed. */
export async function sh(cwd: string, script: string, options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run(cwd, ["bash", ...SHELL, script], options);
  if (code !== 0) throw new Error(`${script}\nended with ${code}: ${stderr}${stdout}`);
  return stdout;
}

/** The same while everything else waits: for preparing a codebase. */
export function shSync(cwd: string, script: string, options: RunOptions = {}): void {
  const env = { PATH: process.env.PATH, ...ENVIRONMENT, ...options.env };
  execFileSync("bash", [...SHELL, script], { cwd, env, stdio: "pipe" });
}
