import { ExecutorError } from "../errors.ts";

/** What an executor has under way, until it is disposed of. */
export class RunningExecutions {
  readonly #ending = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  #end: Promise<void> | undefined;

  /** Aborted with an ExecutorError when the executor is disposed of. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Does something that the caller's signal ends, and the end of the executor. */
  async during<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    this.signal.throwIfAborted();
    const either = signal === undefined ? this.signal : AbortSignal.any([signal, this.signal]);
    const working = work(either);
    this.#underWay.add(working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(working);
    }
  }

  /** Ends everything, then closes; once, however often it is called. */
  end(close: () => Promise<void>): Promise<void> {
    this.#end ??= this.#endAll(close);
    return this.#end;
  }

  async #endAll(close: () => Promise<void>): Promise<void> {
    this.#ending.abort(new ExecutorError("UNAVAILABLE", "this executor was disposed of"));
    await Promise.allSettled(this.#underWay);
    await close();
  }
}
