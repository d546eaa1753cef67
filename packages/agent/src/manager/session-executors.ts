import { PoolError } from "../errors.ts";
import type { Executor } from "../executors/executor.ts";
import type { Language, SandboxType } from "../types.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** An executor that can show the files that its code sees. */
export interface PooledExecutor extends Executor {
  readonly workspace?: Workspace | undefined;
}

/** What lends executors to sessions: a SandboxPool of them. */
export interface ExecutorLender {
  acquire(sessionId: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<PooledExecutor>;
  release(sessionId: string): Promise<void>;
  markBroken(sessionId: string, executor?: PooledExecutor): Promise<boolean>;
}

/** Somewhere to run an execution. */
export interface Candidate {
  obtain(signal: AbortSignal): Promise<Executor>;
  /** It cannot be used any more. True: it is worth asking again. */
  giveUp(executor: Executor): Promise<boolean>;
}

const SANDBOXES: readonly SandboxType[] = ["fense", "docker", "aio"];

/**
 * The executors of a session, in the order in which they are tried. What is to be in a sandbox is never given to a
 * subprocess, whatever else is missing.
 */
export class SessionExecutors {
  readonly #sessionId: string;
  readonly #pool: ExecutorLender | undefined;
  readonly #executors: () => readonly Executor[];

  /** `executors` is asked when the first is needed. */
  constructor(
    sessionId: string,
    from: { readonly pool: ExecutorLender | undefined; readonly executors: () => readonly Executor[] },
  ) {
    this.#sessionId = sessionId;
    this.#pool = from.pool;
    this.#executors = from.executors;
  }

  /** Those that may run this, the one that is wanted first. A pool comes before all other sandboxes. */
  candidates(wanted: SandboxType, language: Language): Candidate[] {
    const executors = this.#executors().filter(({ languages }) => languages.has(language));
    const ofType = (type: SandboxType): Candidate[] => executors.filter((one) => one.type === type).map(standing);
    const sandboxes = [wanted, ...SANDBOXES.filter((type) => type !== wanted)].filter(isSandbox).flatMap(ofType);
    return [...(isSandbox(wanted) ? [] : ofType(wanted)), ...this.#pooled(wanted, language), ...sandboxes];
  }

  #pooled(wanted: SandboxType, language: Language): Candidate[] {
    const pool = this.#pool;
    if (pool === undefined) return [];
    let attempts = 0;
    return [
      {
        obtain: async (signal) => {
          const executor = await pool.acquire(this.#sessionId, { signal });
          if (executor.languages.has(language) && (isSandbox(executor.type) || !isSandbox(wanted))) return executor;
          throw new PoolError("NOT_ACQUIRED", `the pool's executors (${executor.type}) are not for this`);
        },
        giveUp: async (executor) => {
          // Only if it is still the session's: a call beside this one may have got another one already.
          await pool.markBroken(this.#sessionId, executor);
          attempts += 1;
          return attempts === 1;
        },
      },
    ];
  }
}

function isSandbox(type: SandboxType): boolean {
  return type !== "subprocess";
}

function standing(executor: Executor): Candidate {
  return { obtain: async () => executor, giveUp: async () => false };
}
