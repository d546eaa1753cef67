import type { Executor } from "../executors/executor.ts";
import type { PoolOptions } from "./options.ts";
import { SandboxPool } from "./pool.ts";

/** Unless said otherwise, an executor is asked by its `check`, and disposed of. */
export type ExecutorPoolOptions<E extends Executor> = Omit<PoolOptions<E>, "destroy"> &
  Partial<Pick<PoolOptions<E>, "destroy">>;

/** A pool of executors of any kind, for a SandboxManager or by itself. Without `reset`, each serves one session. */
export function executorPool<E extends Executor>(options: ExecutorPoolOptions<E>): SandboxPool<E> {
  return new SandboxPool<E>({
    check: (executor, signal) => executor.check({ signal }),
    destroy: async (executor) => await executor[Symbol.asyncDispose](),
    ...options,
  });
}
