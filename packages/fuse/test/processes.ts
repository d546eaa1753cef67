import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { unmountFuse } from "../src/index.ts";

interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** Starts a script that serves and waits for its first line. */
export async function startServer(script: string, args: readonly string[], identity: Identity) {
  const child = start(script, args, identity);
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const stderr = text(child.stderr!);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const { value: ready, done } = await createInterface({ input: child.stdout! })[Symbol.asyncIterator]().next();
  if (done) throw new Error(`${script} ended before it was ready: ${await stderr}`);
  return {
    child,
    ready: ready as string,
    async exit() {
      const [code, signal] = await exited;
      return { code, signal, stderr: await stderr };
    },
  };
}

/** Runs a script to its end. */
export async function run(script: string, args: readonly string[], identity: Identity) {
  const child = start(script, args, identity);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "exit")]);
  return { code: code as number | null, stdout, stderr };
}

/** A directory of that user's that lasts as long as the test, whatever is still mounted on it. */
export async function directoryFor(identity: Identity): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "fuse-mount-"));
  await chown(path, identity.uid, identity.gid);
  onTestFinished(async () => {
    await unmountFuse(path, { privileged: true });
    await rm(path, { recursive: true });
  });
  return path;
}

export async function isMounted(path: string): Promise<boolean> {
  return (await readFile("/proc/self/mountinfo", "utf8")).includes(` ${path} `);
}

function start(script: string, args: readonly string[], identity: Identity): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
    ...identity,
    cwd: "/",
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
    stdio: ["ignore", "pipe", "pipe"],
  });
}
