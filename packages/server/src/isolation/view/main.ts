import { setImmediate } from "node:timers/promises";
import { workerData } from "node:worker_threads";
import { Errno, SystemError, syscalls } from "@agentfense/fuse";
import { answer } from "../threads/answer.ts";
import { OPERATIONS } from "./operations.ts";
import { Progress, type ViewRequest } from "./thread.ts";

// The thread through which the API looks into mounts. It waits in the kernel for mount threads to answer, so it is neither the
// API's nor a mount thread's, and it may get stuck: its owner then starts another.

const progress = workerData.progress as Int32Array;

// Modes arrive as they are asked for, whatever the process's umask.
syscalls.isolateUmask();

answer(
  async ({ serial, name, input }: ViewRequest) => {
    // The two ends of the thread are typed by the same table: the input is the one that belongs to the name.
    const run = OPERATIONS[name] as (input: unknown) => unknown;
    let value = step(serial, () => run(input));
    if (isGenerator(value)) {
      const work = value;
      for (let turn = step(serial, () => work.next()); ; turn = step(serial, () => work.next())) {
        value = turn.value;
        if (turn.done) break;
        await setImmediate();
      }
    }
    if (typeof value === "number" && value < 0) throw new SystemError(name, -value);
    return value;
  },
  { transferOf: (value) => (value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : []) },
);

/** Lets the owner see what the thread is at while it is stuck in it. */
function step<Value>(serial: number, run: () => Value): Value {
  Atomics.store(progress, Progress.CURRENT, serial);
  try {
    return run();
  } catch (cause) {
    throw new SystemError(String(cause), Errno.EIO);
  } finally {
    Atomics.store(progress, Progress.CURRENT, 0);
    Atomics.add(progress, Progress.STEPS, 1);
  }
}

function isGenerator(value: unknown): value is Generator<void, unknown> {
  return typeof value === "object" && value !== null && "next" in value && Symbol.iterator in value;
}
