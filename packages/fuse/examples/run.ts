import { resolve } from "node:path";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { type FileSystem, ring, serveFuse, unmountFuse } from "@agentfense/fuse";

interface Example {
  readonly name: string;
  /** The file to start again as a Worker: the caller's own. */
  readonly script: string;
  /** What the command line takes, the mount point last. */
  readonly usage: string;
  create(args: readonly string[]): FileSystem;
}

/**
 * Runs a file system from the command line. The loop that serves blocks its thread, so it has a Worker of its own; this
 * one stays free for signals. SIGINT and SIGTERM unmount, which ends the loop once the last file is closed; a second
 * signal does not wait for that.
 */
export async function runExample(example: Example): Promise<void> {
  if (isMainThread) superviseExample(example);
  else await serveExample(example);
}

async function serveExample(example: Example): Promise<void> {
  const args = workerData as readonly string[];
  await serveFuse({
    mountPoint: resolve(args.at(-1)!),
    name: example.name,
    fileSystem: example.create(args),
    log: (message) => console.error(`${example.name}: ${message}`),
    onReady: ({ doorbell }) => parentPort?.postMessage(doorbell),
  });
}

function superviseExample({ name, script, usage }: Example): void {
  const args = process.argv.slice(2);
  if (args.length !== usage.split(" ").length) {
    console.error(`usage: ${name} ${usage}`);
    process.exitCode = 2;
    return;
  }
  const mountPoint = resolve(args.at(-1)!);
  const worker = new Worker(script, { workerData: args });
  let doorbell: number | undefined;
  let signals = 0;

  worker.on("message", (value: number) => {
    doorbell = value;
    console.log(`${name}: mounted at ${mountPoint}`);
  });
  worker.on("error", (error) => {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  });
  worker.on("exit", () => {
    process.off("SIGINT", end);
    process.off("SIGTERM", end);
  });

  function end(): void {
    signals++;
    if (signals > 1 && doorbell !== undefined) ring(doorbell);
    else unmountFuse(mountPoint, { privileged: process.geteuid?.() === 0 }).catch(console.error);
  }
  process.on("SIGINT", end);
  process.on("SIGTERM", end);
}
