import { AnsweringThread, type AskOptions } from "../threads/answering-thread.ts";
import type { JobInput, JobName, JobOutput, JobRequest } from "./jobs.ts";

/** Runs the jobs of the table. What the embedded engine and tests need of the threads. */
export interface Jobs {
  run<Name extends JobName>(name: Name, input: JobInput<Name>, options?: AskOptions): Promise<JobOutput<Name>>;
}

const USUAL_THREADS = 2;

export interface JobThreadOptions {
  readonly threads?: number;
  /** Default true. Otherwise the process ends although the threads are there, even with jobs under way. */
  readonly holdsProcess?: boolean;
}

/**
 * One or two threads for work that would hold up the API. Each job goes to the thread that has the fewest; a thread starts with
 * its first job, since many a server and most programs never have two at a time.
 */
export class JobThread implements Jobs, AsyncDisposable {
  readonly #members: (AnsweringThread | undefined)[];
  readonly #holdsProcess: boolean | undefined;
  #closed = false;

  constructor({ threads = USUAL_THREADS, holdsProcess }: JobThreadOptions = {}) {
    this.#members = new Array(Math.max(1, threads)).fill(undefined);
    this.#holdsProcess = holdsProcess;
  }

  async run<Name extends JobName>(
    name: Name,
    input: JobInput<Name>,
    options: AskOptions = {},
  ): Promise<JobOutput<Name>> {
    if (this.#closed) throw new Error("the job threads are closed");
    options.signal?.throwIfAborted();
    const member = this.#member(this.#leastBusy());
    return (await member.ask({ name, input } satisfies JobRequest, options)) as JobOutput<Name>;
  }

  #leastBusy(): number {
    const busy = this.#members.map((member) => member?.busy ?? 0);
    return busy.indexOf(Math.min(...busy));
  }

  // One that died did so of a defect that its jobs were told of; the others need not suffer.
  #member(place: number): AnsweringThread {
    const present = this.#members[place];
    if (present?.isAlive) return present;
    const main = new URL("./main.ts", import.meta.url);
    const fresh = new AnsweringThread({ main, name: "agentfense-jobs", holdsProcess: this.#holdsProcess });
    this.#members[place] = fresh;
    return fresh;
  }

  /** Waits for what runs, then ends the threads. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#members.map((member) => member?.stop()));
  }
}
