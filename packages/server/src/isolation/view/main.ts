import { parentPort, workerData } from "node:worker_threads";
import { Errno, syscalls } from "@agentfense/fuse";
import { type FromViewThread, Progress, type ToViewThread } from "./messages.ts";
import { OPERATIONS } from "./operations.ts";

// The thread through which the API looks into mounts. It waits in the kernel for engines to answer, so it is neither the
// API's nor an engine's, and it may get stuck: its owner then starts another.

const port = parentPort;
if (port === null) throw new Error("a view thread is started by ViewThread");
const progress = workerData.progress as Int32Array;

// Modes arrive as they are asked for, whatever the process's umask.
syscalls.isolateUmask();

type Step = Generator<void, unknown>;

port.on("message", ({ id, name, input }: ToViewThread) => {
  // The two ends of the thread are typed by the same table: the input is the one that belongs to the name.
  const run = OPERATIONS[name] as (input: unknown) => unknown;
  step(id, () => {
    const result = run(input);
    if (!isGenerator(result)) return answer(id, result);
    advance(id, result);
  });
});

function advance(id: number, work: Step): void {
  step(id, () => {
    const { done, value } = work.next();
    if (done) answer(id, value);
    else setImmediate(() => advance(id, work));
  });
}

function step(id: number, run: () => void): void {
  Atomics.store(progress, Progress.CURRENT, id);
  try {
    run();
  } catch {
    answer(id, -Errno.EIO);
  } finally {
    Atomics.store(progress, Progress.CURRENT, 0);
    Atomics.add(progress, Progress.STEPS, 1);
  }
}

function answer(id: number, value: unknown): void {
  const failed = typeof value === "number" && value < 0;
  const message: FromViewThread = failed ? { id, errno: -value } : { id, value };
  const transfer = value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : [];
  port?.postMessage(message, transfer);
}

function isGenerator(value: unknown): value is Step {
  return typeof value === "object" && value !== null && "next" in value && Symbol.iterator in value;
}
