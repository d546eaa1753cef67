import { type BackgroundJob, type RequestControl, RequestSuspended, type SuspendedRequest } from "@agentfense/fuse";

/**
 * Work on many entries, of a directory or a tree. It can pause wherever it yields: other requests are then answered, so what it
 * has learnt must still be right afterwards, and descriptors that are not its own may be closed.
 */
export type Walk<Result> = Generator<void, Result, void>;

/** A walk pauses once a turn has dealt with so many entries: about a millisecond. */
const ENTRIES_A_TURN = 512;

/** What this thread has done in the turn that it is in. Whoever deals with an entry counts it, paused or not. */
export const turn = {
  /** Within one turn nobody else is served. */
  number: 0,
  entries: 0,
  get isLong(): boolean {
    return turn.entries >= ENTRIES_A_TURN;
  },
  /** The turn is as long as it should get, whatever was done in it. */
  isOver(): void {
    turn.entries = Math.max(turn.entries, ENTRIES_A_TURN);
  },
  /** Begins the next; returns how many entries the last one dealt with. */
  next(): number {
    const { entries } = turn;
    turn.number += 1;
    turn.entries = 0;
    return entries;
  },
};

/** Takes a walk on until the turn is long or the walk is done. */
function advance<Result>(walk: Walk<Result>): IteratorResult<void, Result> {
  for (;;) {
    const step = walk.next();
    if (step.done || turn.isLong) return step;
  }
}

/** Takes a walk to its end at once: for threads that serve nobody else. */
export function atOnce<Result>(walk: Walk<Result>): Result {
  for (;;) {
    const step = walk.next();
    if (step.done) return step.value;
  }
}

/** A walk as a job between requests; `onDone` and `onError` are called once. */
export function walkInBackground<Result>(
  walk: Walk<Result>,
  onDone: (result: Result) => void,
  onError: (error: unknown) => void,
): BackgroundJob {
  return () => {
    let step: IteratorResult<void, Result>;
    try {
      step = advance(walk);
    } catch (error) {
      onError(error);
      return true;
    }
    if (step.done) onDone(step.value);
    return step.done === true;
  };
}

type Outcome = { readonly result: unknown } | { readonly error: unknown };

interface Waiting {
  readonly request: SuspendedRequest;
  /** What it has waited for before. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
}

interface RequestedWalk {
  readonly key: string;
  readonly walk: Walk<unknown>;
  readonly waiting: Waiting[];
}

/**
 * The walks that requests of one workspace need. A short one is done within its request. For a longer one the request waits
 * outside the thread's way, and runs again from its start when the walk is over. All walks of a workspace are one job of its
 * thread, so that a workspace with many gets no more time than one with a single walk.
 */
export class Walks {
  readonly #background: (job: BackgroundJob) => void;
  readonly #control: () => RequestControl;
  readonly #requested = new Map<string, RequestedWalk>();
  /** Requests that wait for the end of something else, by its key. */
  readonly #held = new Map<string, Waiting[]>();
  readonly #unasked: Walk<void>[] = [];
  /** What the request that runs again has waited for. */
  #outcomes: ReadonlyMap<string, Outcome> = new Map();
  #isWorking = false;
  #isClosed = false;

  constructor(options: { background: (job: BackgroundJob) => void; control: () => RequestControl }) {
    this.#background = options.background;
    this.#control = options.control;
  }

  /**
   * The result of a walk for the request that is being handled, which must not have changed anything yet. Throws
   * RequestSuspended when that takes longer than a turn. `key` is what the walk is about: requests that ask for the same wait
   * for the same.
   */
  result<Result>(key: string, begin: () => Walk<Result>): Result {
    const outcome = this.#outcomes.get(key);
    if (outcome !== undefined) {
      if ("error" in outcome) throw outcome.error;
      return outcome.result as Result;
    }
    this.wait(key);
    const walk = begin();
    const step = advance(walk);
    if (step.done) return step.value;
    this.#requested.set(key, { key, walk, waiting: [] });
    this.#work();
    return this.wait(key) as never;
  }

  /** The request that is being handled runs again for a walk of this key, or waits for one. */
  isWaitedFor(key: string): boolean {
    return this.#outcomes.has(key) || this.#requested.has(key);
  }

  /** Has the request that is being handled wait for the end of a walk, if there is one, and run again then. */
  wait(key: string): void {
    const waiting = this.#requested.get(key)?.waiting ?? this.#held.get(key);
    if (waiting === undefined) return;
    waiting.push({ request: this.#control().suspend(), outcomes: this.#outcomes });
    throw new RequestSuspended();
  }

  /** From now on wait() waits for this key, until it is let go: by something that is no request. */
  hold(key: string): Disposable {
    const waiting: Waiting[] = [];
    this.#held.set(key, waiting);
    return {
      [Symbol.dispose]: () => {
        this.#held.delete(key);
        this.#resume(waiting);
      },
    };
  }

  /** A walk that nobody waits for. */
  add(walk: Walk<void>): void {
    this.#unasked.push(walk);
    this.#work();
  }

  /** The mount is gone: walks give back what they hold. */
  close(): void {
    this.#isClosed = true;
    for (const { walk } of this.#requested.values()) walk.return(undefined);
    for (const walk of this.#unasked) walk.return();
    this.#requested.clear();
    this.#unasked.length = 0;
  }

  #work(): void {
    if (this.#isWorking || this.#isClosed) return;
    this.#isWorking = true;
    this.#background(() => {
      if (!this.#isClosed) this.#step();
      this.#isWorking = !this.#isClosed && (this.#requested.size > 0 || this.#unasked.length > 0);
      return !this.#isWorking;
    });
  }

  // The walk that has waited longest goes on; what nobody waits for comes last.
  #step(): void {
    const [next] = this.#requested.values();
    if (next !== undefined) {
      this.#requested.delete(next.key);
      this.#requested.set(next.key, next);
      this.#stepRequested(next);
      return;
    }
    const walk = this.#unasked[0];
    if (walk !== undefined && advance(walk).done) this.#unasked.shift();
  }

  #stepRequested(requested: RequestedWalk): void {
    const { key, walk, waiting } = requested;
    let outcome: Outcome;
    try {
      const isAbandoned = waiting.every(({ request }) => request.interrupted);
      const step = isAbandoned ? walk.return(undefined) : advance(walk);
      if (!step.done) return;
      outcome = { result: step.value };
    } catch (error) {
      outcome = { error };
    }
    this.#requested.delete(key);
    // They run from their start, now, so that nothing happens between the walk and what it was for.
    this.#resume(
      waiting.map(({ request, outcomes }) => ({ request, outcomes: new Map([...outcomes, [key, outcome]]) })),
    );
  }

  #resume(waiting: readonly Waiting[]): void {
    if (this.#isClosed) return;
    for (const { request, outcomes } of waiting) {
      this.#outcomes = outcomes;
      request.resume();
    }
    this.#outcomes = new Map();
  }
}
