import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What clients/client.py is asked to do; the functions there have these names and parameters. */
export type Task =
  | { readonly task: "command"; readonly argv: readonly string[]; readonly cwd: string; readonly count?: string }
  | { readonly task: "stat" | "open_read"; readonly paths: PathList }
  | { readonly task: "create"; readonly directory: string; readonly count: number }
  | { readonly task: "rename" | "delete"; readonly directory: string }
  | { readonly task: "read"; readonly file: string }
  | { readonly task: "random_read"; readonly file: string; readonly span: number; readonly count: number }
  | { readonly task: "write"; readonly file: string; readonly block: number; readonly count: number };

/** `files` names made from `name` (a printf format) in each of the directories. */
export interface PathList {
  readonly directories: readonly string[];
  readonly files: number;
  readonly name: string;
}

export interface Answer {
  readonly seconds: number;
  readonly check: number;
}

/** Absent: the user who runs the benchmark. */
export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** How a process of the benchmark is run: as whom, and on CPU 0 alone or wherever the scheduler puts it. */
export interface Placement {
  readonly identity?: Identity | undefined;
  readonly pinned: boolean;
}

// The system's own interpreter: a version manager's may be a slow shell script in a directory only root can enter.
export const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
const CLIENT = fileURLToPath(new URL("clients/client.py", import.meta.url));

/** Runs one task in a fresh client process. */
export async function runClient(task: Task, placement: Placement, signal: AbortSignal): Promise<Answer> {
  const output = await run([PYTHON, "-S", "-B", CLIENT, JSON.stringify(task)], placement, signal);
  return JSON.parse(output) as Answer;
}

/** Runs a command to its end and gives its standard output; anything but exit status 0 is an error. */
export async function run(argv: readonly string[], placement: Placement, signal?: AbortSignal): Promise<string> {
  signal?.throwIfAborted();
  const [file, ...args] = placed(argv, placement);
  // A process group of its own: Ctrl-C reaches the benchmark alone, which then ends what it started in order.
  const options = { ...placement.identity, env: CLIENT_ENVIRONMENT, detached: true };
  const child = spawn(file, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => errors.push(chunk));
  const kill = () => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.on("error", reject);
  child.on("close", resolve);
  signal?.addEventListener("abort", kill, { once: true });
  const status = await promise.finally(() => signal?.removeEventListener("abort", kill));
  signal?.throwIfAborted();
  if (status !== 0) {
    const reason = Buffer.concat(errors).toString().trim().split("\n").at(-1) ?? "";
    throw new Error(`${argv[0]} ended with ${status ?? "a signal"}: ${reason.slice(0, 300)}`);
  }
  return Buffer.concat(output).toString();
}

/** The command line that keeps a command on CPU 0 when it is to be pinned. */
export function placed(argv: readonly string[], placement: Placement): [string, ...string[]] {
  const [file, ...args] = argv as [string, ...string[]];
  return placement.pinned ? ["taskset", "-c", "0", file, ...args] : [file, ...args];
}

const CLIENT_ENVIRONMENT = {
  PATH: process.env.PATH,
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  // The tree belongs to the ordinary user, and root looks at it too.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.directory",
  GIT_CONFIG_VALUE_0: "*",
};
