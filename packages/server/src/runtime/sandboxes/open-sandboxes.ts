import { join } from "node:path";
import { SERVER } from "../caller.ts";
import type { SandboxRecordStatus } from "../store/store.ts";
import { endsWithin } from "../waiting.ts";
import type { Sandboxes } from "./api.ts";
import { auditTrailIn } from "./audit-trail.ts";
import { sandboxCalls } from "./calls.ts";
import { changeCalls } from "./changes.ts";
import { Commands, commandCalls } from "./commands.ts";
import { contextCalls } from "./contexts.ts";
import { fileCalls } from "./files.ts";
import { Homes } from "./homes.ts";
import { SnapshotLayers } from "./layers.ts";
import { Lifecycle } from "./lifecycle.ts";
import { spreadNews, spreadSecret } from "./news.ts";
import { SANDBOX_DEFAULTS, type SandboxesOptions } from "./options.ts";
import { type Parts, unsettledIn } from "./parts.ts";
import { Pausing } from "./pausing.ts";
import { portCalls } from "./ports.ts";
import { processCalls } from "./processes.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";
import { SandboxRegistry } from "./registry.ts";
import { bringBack, findSandboxes, reap, settleInterrupted, tidyDeltas } from "./restart.ts";
import { openSessions } from "./sessions.ts";
import { snapshotCalls } from "./snapshots.ts";
import type { State } from "./state.ts";
import { Sync } from "./sync.ts";

/** Closing ends what runs, syncs a last time and leaves the records: what ran will run again. */
export interface OpenSandboxes extends Sandboxes, AsyncDisposable {
  /** Everything that ran before is running again, or in ERROR. */
  readonly ready: Promise<void>;
  counts(): Readonly<Record<SandboxRecordStatus, number>>;
  /** What all sandboxes have changed and not synced, and their own homes, in bytes; measured now and then. */
  deltaBytes(): Promise<number>;
  close(): Promise<void>;
}

/** Measuring walks through every delta: an answer serves for a while. */
const FRESH_MS = 30_000;
/** A box that does not end is killed with the server. */
const LONGEST_CLOSE_MS = 7_000;

const PAUSABLE: ReadonlySet<State> = new Set(["RUNNING", "IDLE"]);

/** The sandboxes of all owners: each call is answered by the part that does the work. */
export async function openSandboxes(options: SandboxesOptions): Promise<OpenSandboxes> {
  const { store, codebases, deltas, deltaDirectory } = options;
  const { clock = Date.now, log = () => {} } = options;
  const defaults = { ...SANDBOX_DEFAULTS, ...options.defaults };

  const registry = new SandboxRegistry();
  const deltaOf: Parts["deltaOf"] = ({ id }) => join(deltaDirectory, id);
  const given = { ...options, defaults, clock, log, registry, auditTrail: auditTrailIn(options.audit), deltaOf };
  await findSandboxes(given);
  await store.closeAllSessions(clock(), "server_restarted");
  await tidyDeltas(given);

  const unsettled = unsettledIn(deltaDirectory);
  const sync = new Sync({ ...given, unsettled });
  await settleInterrupted({ ...given, sync }, unsettled);
  const pausing = new Pausing(given);
  const commands = new Commands({ ...given, sync });
  const sessions = openSessions({ ...given, pausing, commands });
  const layers = new SnapshotLayers(given);
  await layers.sweep();
  const own = { ...given, homes: new Homes(given), layers, sync, pausing, sessions };
  const lifecycle = new Lifecycle(own);
  const endExpired = (registered: RegisteredSandbox): void => {
    if (registered.departure !== undefined) return;
    const isPaused = registered.record.pauseAtExpiry && PAUSABLE.has(registered.state);
    const ending = isPaused
      ? pausing.expire(registered, clock() + defaults.maxExpirationMs)
      : lifecycle.destroy(SERVER, registered, "expired");
    ending.catch((error: unknown) => {
      log({ level: "error", message: "an expired sandbox could not be ended", sandboxId: registered.id, error });
    });
  };
  const reaper = reap(registry, endExpired, { clock, intervalMs: defaults.cleanupIntervalMs });
  const parts: Parts = { ...own, lifecycle, commands };
  const sandboxes = sandboxCalls({ ...parts, onExpiry: () => reaper.look() });
  const calls: Sandboxes = {
    ...sandboxes,
    ...snapshotCalls({ ...parts, makeFrom: sandboxes.makeFrom }),
    ...commandCalls(parts),
    ...portCalls(parts),
    ...changeCalls(parts),
    ...fileCalls(parts),
    ...processCalls(parts),
    ...contextCalls(parts),
    ...sessions.calls,
  };
  const measure = async (): Promise<number> => {
    let bytes = 0;
    for (const registered of registry) bytes += await deltas.measure(deltaOf(registered));
    return bytes;
  };
  let measured: { readonly atMs: number; readonly bytes: Promise<number> } | undefined;

  const listening = new DisposableStack();
  listening.use(codebases.onChange((change) => spreadNews(parts, change)));
  listening.use(options.secrets.onChange((change) => spreadSecret(parts, change)));
  const ready = bringBack(parts).then(() => reaper.look());
  ready.catch(() => {}); // awaited by whoever opens the door

  const close = once(async (): Promise<void> => {
    registry.shut();
    reaper[Symbol.dispose]();
    const inTime = await endsWithin(LONGEST_CLOSE_MS, lifecycle.close(registry));
    if (!inTime) log({ level: "warn", message: "not every sandbox ended in time" });
    listening[Symbol.dispose]();
  });
  return {
    ...calls,
    ready,
    counts: () => registry.counts(),
    deltaBytes() {
      const nowMs = clock();
      if (measured === undefined || nowMs - measured.atMs > FRESH_MS) {
        measured = { atMs: nowMs, bytes: measure() };
        measured.bytes.catch(() => {
          measured = undefined;
        });
      }
      return measured.bytes;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function once(work: () => Promise<void>): () => Promise<void> {
  let result: Promise<void> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}
