import { parentPort } from "node:worker_threads";
import { syscalls } from "@agentfense/fuse";
import { JOBS, type JobContext, type JobName } from "./jobs.ts";
import type { FromJobThread, JobFailure, ToJobThread } from "./messages.ts";

// A job thread. Jobs that wait take turns; one that computes holds up the others of its thread, and nobody else.

const port = parentPort;
if (port === null) throw new Error("a job thread is started by JobThread");

// Modes arrive on the disk as the jobs ask for them, whatever the process's umask. Where the kernel refuses, the jobs that
// care set their modes once more.
syscalls.isolateUmask();

const running = new Map<number, AbortController>();
const send = (message: FromJobThread): void => port.postMessage(message);

port.on("message", (message: ToJobThread) => {
  if (message.kind === "stop") port.close();
  else if (message.kind === "abort") running.get(message.id)?.abort();
  else void run(message.id, message.name, message.input);
});
send({ kind: "started" });

async function run(id: number, name: JobName, input: unknown): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  try {
    // The two ends of the thread are typed by the same table: the input is the one that belongs to the name.
    const job = JOBS[name] as (input: unknown, context: JobContext) => unknown;
    const output = await job(input, { signal: controller.signal });
    send({ kind: "done", id, output });
  } catch (error) {
    send({ kind: "failed", id, failure: failureOf(error) });
  } finally {
    running.delete(id);
  }
}

function failureOf(error: unknown): JobFailure {
  if (!(error instanceof Error)) {
    return { name: "Error", message: String(error), stack: undefined, code: undefined, errno: undefined };
  }
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    code: typeof code === "string" ? code : undefined,
    errno: typeof errno === "number" ? errno : undefined,
  };
}
