import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { SERVER } from "../caller.ts";
import type { SandboxRecordStatus } from "../store/store.ts";
import type { Sandboxes } from "./api.ts";
import { Changes } from "./changes.ts";
import { spreadNews } from "./codebase-news.ts";
import { Commands } from "./commands.ts";
import { DeltaSize } from "./delta-size.ts";
import { Homes } from "./homes.ts";
import { Lifecycle } from "./lifecycle.ts";
import { SandboxManager } from "./manager.ts";
import { SANDBOX_DEFAULTS, type SandboxesOptions } from "./options.ts";
import { Pausing } from "./pausing.ts";
import { Reaper } from "./reaper.ts";
import type { Resident } from "./resident.ts";
import { Residents } from "./residents.ts";
import { bringBack, findSandboxes, settleInterrupted, tidyDeltas } from "./restart.ts";
import { Sessions } from "./sessions.ts";
import { Sync } from "./sync.ts";
import { Unsettled } from "./unsettled.ts";
import { SandboxFiles } from "./view-files.ts";
import { Witness } from "./witness.ts";

/** Closing ends what runs, syncs a last time and leaves the records: what ran will run again. */
export interface OpenSandboxes extends Sandboxes, AsyncDisposable {
  /** Everything that ran before is running again, or in ERROR. */
  readonly ready: Promise<void>;
  counts(): Readonly<Record<SandboxRecordStatus, number>>;
  sessionCount(): number;
  /** What all sandboxes have changed and not synced, and their own homes, in bytes; measured now and then. */
  deltaBytes(): Promise<number>;
  close(): Promise<void>;
}

/** A box that does not end is killed with the server. */
const LONGEST_CLOSE_MS = 7_000;

/** The sandbox manager with its parts. */
export async function openSandboxes(options: SandboxesOptions): Promise<OpenSandboxes> {
  const { store, codebases, deltas, deltaDirectory } = options;
  const defaults = { ...SANDBOX_DEFAULTS, ...options.defaults };
  const clock = options.clock ?? Date.now;
  const log = options.log ?? (() => {});
  const { observe } = options;

  const residents = new Residents();
  await findSandboxes(store, residents);
  await store.closeAllSessions(clock(), "server_restarted");
  await tidyDeltas(deltaDirectory, residents, deltas, log);

  const deltaOf = ({ id }: Pick<Resident, "id">): string => join(deltaDirectory, id);
  const witness = new Witness(options.audit);
  const observing = observe === undefined ? {} : { observe };
  const unsettled = new Unsettled(deltaDirectory);
  const sync = new Sync({ codebases, deltas, unsettled, witness, log, deltaOf, ...observing });
  await settleInterrupted(residents, unsettled, sync, log);
  const pausing = new Pausing({ witness, log });
  const commands = new Commands({ sync, pausing, witness, clock, observe });
  const sessions = new Sessions({
    store,
    pausing,
    commands,
    witness,
    clock,
    log,
    maxPerSandbox: defaults.maxSessionsPerSandbox,
  });
  const homes = new Homes({ ...options, maxPerOwner: defaults.maxHomesPerOwner });
  const lifecycle = new Lifecycle({
    ...options,
    homes,
    sync,
    pausing,
    sessions,
    witness,
    clock,
    log,
    deltaOf,
    forget: (resident) => residents.remove(resident),
  });
  const reaper = new Reaper({
    all: () => [...residents].map((resident) => ({ resident, expiresAtMs: resident.record.expiresAtMs })),
    end: ({ resident }) => {
      if (resident.departure !== undefined) return;
      lifecycle.destroy(SERVER, resident, "expired").catch((error: unknown) => {
        log({ level: "error", message: "an expired sandbox could not be destroyed", sandboxId: resident.id, error });
      });
    },
    clock,
    intervalMs: defaults.cleanupIntervalMs,
  });
  const manager = new SandboxManager({
    ...options,
    homes,
    defaults,
    clock,
    residents,
    lifecycle,
    pausing,
    commands,
    sessions,
    changes: new Changes({ codebases, deltas, sync, witness, deltaOf }),
    files: new SandboxFiles({ sync, witness }),
    witness,
    onCreated: () => reaper.look(),
  });
  const deltaSize = new DeltaSize(async () => {
    let bytes = 0;
    for (const resident of residents) bytes += await deltas.measure(deltaOf(resident));
    return bytes;
  }, clock);

  const listening = codebases.onChange((change) => spreadNews(residents, change, log));
  const ready = bringBack(residents, lifecycle).then(() => reaper.look());
  ready.catch(() => {}); // awaited by whoever opens the door

  const close = once(async (): Promise<void> => {
    manager.shut();
    reaper[Symbol.dispose]();
    const patience = new AbortController();
    const inTime = await Promise.race([
      lifecycle.close(residents).then(() => true),
      wait(LONGEST_CLOSE_MS, false, { signal: patience.signal }).catch(() => false),
    ]);
    patience.abort();
    if (!inTime) log({ level: "warn", message: "not every sandbox ended in time" });
    listening[Symbol.dispose]();
  });
  return Object.assign(manager, {
    ready,
    counts: () => residents.counts(),
    sessionCount: () => sessions.count,
    deltaBytes: () => deltaSize.bytes(),
    close,
    [Symbol.asyncDispose]: close,
  });
}

function once(work: () => Promise<void>): () => Promise<void> {
  let result: Promise<void> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}
