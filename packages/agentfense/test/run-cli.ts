import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

/** What a user has who installed nothing; tests of toolchains say more. */
const PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const cli = join(import.meta.dirname, "../src/cli.ts");

export interface Surroundings {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Run it as this user. */
  readonly identity?: { readonly uid: number; readonly gid: number };
  /** What it reads; absent: nothing, and no pipe either. */
  readonly input?: string | Uint8Array;
  /** A pipe that stays open until the test ends it. */
  readonly holdsInput?: true;
}

/** Runs the real command line to its end. */
export async function agentfense(args: readonly string[], surroundings: Surroundings = {}) {
  const child = start(args, surroundings);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "exit")]);
  return { code: code as number | null, stdout, stderr };
}

/** Starts `agentfense mount` and waits for its line; ends it with the test if the test did not. */
export async function startMount(args: readonly string[], surroundings: Surroundings = {}) {
  const child = start(["mount", ...args], surroundings);
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  const stderr = text(child.stderr!);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const { value: ready, done } = await lines.next();
  if (done) throw new Error(`agentfense mount ended before it was ready: ${await stderr}`);
  return {
    child,
    ready: ready as string,
    /** Sends the signal and gives what the process ended with and printed after its first line. */
    async end(signal: NodeJS.Signals) {
      child.kill(signal);
      const [code] = await exited;
      const more: string[] = [];
      for (let line = await lines.next(); !line.done; line = await lines.next()) more.push(line.value);
      return { code, stdout: more, stderr: await stderr };
    },
  };
}

/** A directory that lasts as long as the test. */
export async function scratch(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "agentfense-cli-test-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Starts the real command line. */
export function start(args: readonly string[], surroundings: Surroundings): ChildProcess {
  const { cwd, env = {}, identity, input, holdsInput } = surroundings;
  const { FORCE_COLOR: _force, NO_COLOR: _no, ...clean } = process.env;
  const child = spawn(process.execPath, [cli, ...args], {
    ...identity,
    cwd,
    env: { ...clean, PATH: PLAIN_PATH, LC_ALL: "C", ...env },
    stdio: [input === undefined && !holdsInput ? "ignore" : "pipe", "pipe", "pipe"],
  });
  // What does not read its input to the end is no failure of the test.
  child.stdin?.on("error", () => {});
  if (!holdsInput) child.stdin?.end(input);
  return child;
}
