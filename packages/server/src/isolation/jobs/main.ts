import { syscalls } from "@agentfense/fuse";
import { answer } from "../threads/answer.ts";
import { JOBS, type JobContext, type JobRequest } from "./jobs.ts";

// Modes arrive on the disk as the jobs ask for them, whatever the process's umask. Where the kernel refuses, the jobs that
// care set their modes once more.
syscalls.isolateUmask();

answer(({ name, input }: JobRequest, context) => {
  // The two ends of the thread are typed by the same table: the input is the one that belongs to the name.
  const job = JOBS[name] as (input: unknown, context: JobContext) => unknown;
  return job(input, context);
});
