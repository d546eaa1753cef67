import { chmod, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { isSandboxId } from "../ids.ts";
import { LONGEST_TIMER_MS } from "../waiting.ts";
import type { Clock } from "./options.ts";
import type { Parts, Unsettled } from "./parts.ts";
import { RegisteredSandbox } from "./registered-sandbox.ts";
import { isLiving } from "./state.ts";

/** Mounting waits for the kernel and for processes; more at once only take turns. */
const AT_ONCE = 8;
const PAGE = 1000;

/** Finds every sandbox of the store. */
export async function findSandboxes({ store, registry }: Pick<Parts, "store" | "registry">): Promise<void> {
  let after: readonly [number, string] | undefined;
  while (true) {
    const records = await store.listSandboxes({ after, limit: PAGE });
    for (const record of records) registry.add(new RegisteredSandbox(record, store));
    const last = records.at(-1);
    if (last === undefined || records.length < PAGE) return;
    after = [last.createdAtMs, last.id];
  }
}

/** Makes the place for the deltas, and removes those whose sandboxes are gone: a destroy that was cut short. */
export async function tidyDeltas(parts: Pick<Parts, "deltaDirectory" | "registry" | "deltas" | "log">): Promise<void> {
  const { deltaDirectory: directory, registry, deltas, log } = parts;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  const known = new Set([...registry].map(({ id }) => id));
  // Whatever does not look like one of ours is somebody else's.
  const strays = (await readdir(directory)).filter((name) => isSandboxId(name) && !known.has(name));
  for (const name of strays) {
    await deltas.remove(join(directory, name)).catch((error: unknown) => {
      log({ level: "warn", message: "the delta of a destroyed sandbox could not be removed", sandboxId: name, error });
    });
  }
}

/** Ends the syncs that were cut short: all of them before anybody can write. */
export async function settleInterrupted(
  { registry, sync, log }: Pick<Parts, "registry" | "sync" | "log">,
  unsettled: Unsettled,
): Promise<void> {
  const marked = new Set(await unsettled.marked());
  for (const registered of registry) {
    if (!marked.delete(registered.id)) continue;
    await sync.recover(registered).catch((error: unknown) => {
      log({ level: "error", message: "an interrupted sync could not be ended", sandboxId: registered.id, error });
    });
  }
  for (const id of marked) await unsettled.clear(id);
}

/** Starts those again that ran when the server ended. */
export async function bringBack({ registry, lifecycle }: Parts): Promise<void> {
  const waiting = [...registry]
    .filter(({ state }) => isLiving(state))
    .map((registered) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      registered.returning = promise;
      return { registered, resolve };
    });
  const workers = Array.from({ length: Math.min(AT_ONCE, waiting.length) }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { registered, resolve } = next;
      await lifecycle.bringBack(registered).finally(() => {
        registered.returning = undefined;
        resolve();
      });
    }
  });
  await Promise.all(workers);
}

/** A clock that was set back must not make the reaper spin. */
const SHORTEST_WAIT_MS = 10;

/** Ends what has expired: when the next one is due, when it is told to look, and every so often all the same. */
export function reap(
  all: Iterable<RegisteredSandbox>,
  /** Called again at the next round for one that is still there. */
  end: (expired: RegisteredSandbox) => void,
  { clock, intervalMs }: { readonly clock: Clock; readonly intervalMs: number },
): Disposable & { look(): void } {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function look(): void {
    if (isStopped) return;
    const nowMs = clock();
    let nextMs = nowMs + intervalMs;
    for (const one of all) {
      const { expiresAtMs } = one.record;
      if (expiresAtMs === undefined) continue;
      if (expiresAtMs <= nowMs) end(one);
      else nextMs = Math.min(nextMs, expiresAtMs);
    }
    clearTimeout(timer);
    timer = setTimeout(look, Math.min(Math.max(nextMs - nowMs, SHORTEST_WAIT_MS), LONGEST_TIMER_MS));
    timer.unref();
  }

  return {
    look,
    [Symbol.dispose]() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
