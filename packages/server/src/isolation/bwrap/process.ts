import type { BoxProcess, ProcessExit } from "../backend/backend.ts";
import type { Job } from "./job.ts";

/** A job with pipes as the process it runs. */
export function boxProcess(job: Job, exit: Promise<ProcessExit>): BoxProcess {
  const { stdin, stdout, stderr } = pipesOf(job);
  return { ...(stdin === undefined ? {} : { stdin }), stdout, stderr, exit, kill: () => job.kill() };
}

/** The streams of a job that was started with pipes. */
export function pipesOf(job: Job): {
  stdin: Job["stdin"];
  stdout: NonNullable<Job["stdout"]>;
  stderr: NonNullable<Job["stderr"]>;
} {
  const { stdin, stdout, stderr } = job;
  if (stdout === undefined || stderr === undefined) throw new TypeError("this job has a terminal instead of pipes");
  return { stdin, stdout, stderr };
}
