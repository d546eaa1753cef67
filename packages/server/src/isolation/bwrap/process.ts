import type { BoxProcess, ProcessExit } from "../backend/backend.ts";
import type { Job } from "./job.ts";

/** A job with pipes as the process it runs. A spare's has an input also when the command wants none. */
export function boxProcess(job: Job, exit: Promise<ProcessExit>, wants: { readonly stdin: boolean }): BoxProcess {
  const { stdin, stdout, stderr } = pipesOf(job);
  return { ...(stdin === undefined || !wants.stdin ? {} : { stdin }), stdout, stderr, exit, kill: () => job.kill() };
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
