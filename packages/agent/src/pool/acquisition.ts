import { PoolError } from "../errors.ts";
import type { PoolClock } from "./options.ts";

interface Caller<T> {
  resolve(instance: T): void;
  reject(error: unknown): void;
  /** Its timer and its signal are of no concern any more. */
  forget(): void;
}

/** A session's place in the queue. All who ask for the same session meanwhile share it, each as patient as they are. */
export class Acquisition<T> {
  readonly sessionId: string;
  readonly askedAt: number;
  readonly #clock: PoolClock;
  readonly #callers = new Set<Caller<T>>();
  readonly #leaving: { timedOut(): void; abandoned(): void };

  constructor(sessionId: string, clock: PoolClock, leaving: { timedOut(): void; abandoned(): void }) {
    this.sessionId = sessionId;
    this.askedAt = clock.now();
    this.#clock = clock;
    this.#leaving = leaving;
  }

  /** Waits for what comes first: the instance, the end of the time, the signal. */
  join({ timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal | undefined }): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const onAbort = (): void => this.#leave(caller, signal?.reason);
    const timer = this.#clock.after(timeoutMs, () => {
      this.#leaving.timedOut();
      this.#leave(caller, timeout(this.sessionId, timeoutMs));
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    const forget = (): void => {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
    };
    const caller = { resolve, reject, forget };
    this.#callers.add(caller);
    return promise;
  }

  succeed(instance: T): void {
    for (const caller of this.#takeCallers()) caller.resolve(instance);
  }

  fail(error: unknown): void {
    for (const caller of this.#takeCallers()) caller.reject(error);
  }

  #takeCallers(): Caller<T>[] {
    const callers = [...this.#callers];
    this.#callers.clear();
    for (const caller of callers) caller.forget();
    return callers;
  }

  #leave(caller: Caller<T>, error: unknown): void {
    if (!this.#callers.delete(caller)) return;
    caller.forget();
    caller.reject(error);
    if (this.#callers.size === 0) this.#leaving.abandoned();
  }
}

function timeout(sessionId: string, timeoutMs: number): PoolError {
  return new PoolError("ACQUIRE_TIMEOUT", `no instance became free for session ${sessionId} within ${timeoutMs} ms`);
}
