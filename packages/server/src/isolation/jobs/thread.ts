import { type Transferable, Worker } from "node:worker_threads";
import type { JobInput, JobName, JobOutput } from "./jobs.ts";
import type { FromJobThread, JobFailure, ToJobThread } from "./messages.ts";

/** What a job threw, on the thread that asked for it. */
export class JobError extends Error {
  /** "ENOENT", "DELTA_IN_USE" … of the error, if it had one. */
  readonly code: string | undefined;
  /** Of an error of the kernel's. */
  readonly errno: number | undefined;

  constructor(failure: JobFailure) {
    super(failure.message, { cause: failure.stack });
    this.name = failure.name;
    this.code = failure.code;
    this.errno = failure.errno;
  }
}

export interface JobOptions {
  readonly signal?: AbortSignal;
  /** Buffers and ports in the input that move instead of being copied. */
  readonly transfer?: readonly Transferable[];
}

/** Runs the jobs of the table. What the embedded engine and tests need of the threads. */
export interface Jobs {
  run<Name extends JobName>(name: Name, input: JobInput<Name>, options?: JobOptions): Promise<JobOutput<Name>>;
}

const USUAL_THREADS = 2;

interface Waiting {
  resolve(output: unknown): void;
  reject(error: Error): void;
}

/** One or two threads for work that would hold up the API. Each job goes to the thread that has the fewest. */
export class JobThread implements Jobs, AsyncDisposable {
  readonly #members: Member[];
  #closed = false;

  readonly #options: MemberOptions;

  private constructor(members: Member[], options: MemberOptions) {
    this.#members = members;
    this.#options = options;
  }

  static async start(options: { readonly threads?: number } & Partial<MemberOptions> = {}): Promise<JobThread> {
    const count = Math.max(1, options.threads ?? USUAL_THREADS);
    const memberOptions = { holdsProcess: options.holdsProcess ?? true };
    const starting = Array.from({ length: count }, () => Member.start(memberOptions));
    const settled = await Promise.allSettled(starting);
    const members = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const failed = settled.find((one) => one.status === "rejected");
    if (failed === undefined) return new JobThread(members, memberOptions);
    await Promise.all(members.map((member) => member.stop()));
    throw failed.reason;
  }

  async run<Name extends JobName>(
    name: Name,
    input: JobInput<Name>,
    options: JobOptions = {},
  ): Promise<JobOutput<Name>> {
    if (this.#closed) throw new Error("the job threads are closed");
    options.signal?.throwIfAborted();
    const place = this.#leastBusy();
    const member = this.#members[place]!;
    const able = member.alive ? member : await this.#replace(place, member);
    return (await able.run(name, input, options)) as JobOutput<Name>;
  }

  #leastBusy(): number {
    let best = 0;
    for (let index = 1; index < this.#members.length; index++) {
      if (this.#members[index]!.busy < this.#members[best]!.busy) best = index;
    }
    return best;
  }

  // It died of a defect that its jobs were told of; the others need not suffer.
  async #replace(place: number, dead: Member): Promise<Member> {
    const fresh = await Member.start(this.#options);
    if (this.#closed) {
      await fresh.stop();
      throw new Error("the job threads are closed");
    }
    const present = this.#members[place]!;
    if (present !== dead) await fresh.stop();
    else this.#members[place] = fresh;
    return this.#members[place]!;
  }

  /** Waits for what runs, then ends the threads. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#members.map((member) => member.stop()));
  }
}

/** Threads that start with the first job, for who may never have one. They keep no process alive. */
export class LazyJobs implements Jobs, AsyncDisposable {
  readonly #threads: number;
  #started: Promise<JobThread> | undefined;
  #closed = false;

  constructor(options: { readonly threads: number }) {
    this.#threads = options.threads;
  }

  async run<Name extends JobName>(
    name: Name,
    input: JobInput<Name>,
    options: JobOptions = {},
  ): Promise<JobOutput<Name>> {
    if (this.#closed) throw new Error("the job threads are closed");
    this.#started ??= JobThread.start({ threads: this.#threads, holdsProcess: false }).catch((error: unknown) => {
      this.#started = undefined;
      throw error;
    });
    return await (await this.#started).run(name, input, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const threads = await this.#started?.catch(() => undefined);
    await threads?.[Symbol.asyncDispose]();
  }
}

interface MemberOptions {
  /** Default true. Otherwise the process ends although the threads are there, even with jobs under way. */
  readonly holdsProcess: boolean;
}

/** One thread and the jobs it was given. */
class Member {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #idle: (() => void) | undefined;
  alive = true;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static start({ holdsProcess }: MemberOptions): Promise<Member> {
    const worker = new Worker(new URL("./main.ts", import.meta.url), { name: "agentfense-jobs" });
    const member = new Member(worker);
    return new Promise((resolve, reject) => {
      let reason = "it stopped by itself";
      worker.on("error", (error: Error) => {
        reason = error.stack ?? error.message;
      });
      worker.on("exit", () => {
        const lost = new Error(`a job thread ended: ${reason}`);
        reject(lost);
        member.#lose(lost);
      });
      worker.on("message", (message: FromJobThread) => {
        if (message.kind === "started") resolve(member);
        else member.#answer(message);
      });
      // After the listeners: adding one for messages takes hold of the process again.
      if (!holdsProcess) worker.unref();
    });
  }

  get busy(): number {
    return this.#waiting.size;
  }

  run(name: JobName, input: unknown, { signal, transfer }: JobOptions): Promise<unknown> {
    const id = this.#nextId++;
    const abort = (): void => this.#send({ kind: "abort", id });
    const result = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#send({ kind: "run", id, name, input }, transfer);
    if (signal === undefined) return result;
    signal.addEventListener("abort", abort, { once: true });
    return result.finally(() => signal.removeEventListener("abort", abort));
  }

  async stop(): Promise<void> {
    if (!this.alive) return;
    if (this.#waiting.size > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    if (!this.alive) return;
    const gone = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
    this.#send({ kind: "stop" });
    await gone;
  }

  #send(message: ToJobThread, transfer: readonly Transferable[] = []): void {
    if (this.alive) this.#worker.postMessage(message, [...transfer]);
  }

  #answer(message: Exclude<FromJobThread, { kind: "started" }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === "done") waiting?.resolve(message.output);
    else waiting?.reject(new JobError(message.failure));
    if (this.#waiting.size === 0) this.#idle?.();
  }

  #lose(error: Error): void {
    this.alive = false;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    this.#idle?.();
  }
}
