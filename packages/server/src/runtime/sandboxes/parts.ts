import { statSync } from "node:fs";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isSandboxId } from "../ids.ts";
import type { Log } from "../log.ts";
import type { AuditTrail } from "./audit-trail.ts";
import type { Commands } from "./commands.ts";
import type { Homes } from "./homes.ts";
import type { SnapshotLayers } from "./layers.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Clock, SandboxDefaults, SandboxesOptions } from "./options.ts";
import type { Pausing } from "./pausing.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";
import type { SandboxRegistry } from "./registry.ts";
import type { Sessions } from "./sessions.ts";
import type { Sync } from "./sync.ts";

/** What the parts of the sandboxes share: what they were opened with, and each other. */
export interface Parts extends Omit<SandboxesOptions, "defaults" | "clock" | "log"> {
  readonly defaults: SandboxDefaults;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: SandboxRegistry;
  readonly lifecycle: Lifecycle;
  readonly commands: Commands;
  readonly sessions: Sessions;
  readonly pausing: Pausing;
  readonly homes: Homes;
  readonly layers: SnapshotLayers;
  readonly sync: Sync;
  readonly auditTrail: AuditTrail;
  /** The directory of a sandbox's changes. */
  deltaOf(registered: Pick<RegisteredSandbox, "id">): string;
}

const SUFFIX = ".unsettled";

/**
 * Marks beside the deltas: this sandbox's changes are on their way into the codebase and have not left the delta. One that is
 * found after a crash says that the delta may hold what the codebase has, which must leave before somebody writes something
 * newer there: the next sync would take it for a change.
 */
export function unsettledIn(directory: string) {
  const place = (sandboxId: string): string => join(directory, `${sandboxId}${SUFFIX}`);
  return {
    mark: (sandboxId: string): Promise<void> => writeFile(place(sandboxId), "", { mode: 0o600 }),
    clear: (sandboxId: string): Promise<void> => rm(place(sandboxId), { force: true }),
    async marked(): Promise<readonly string[]> {
      const marks = (await readdir(directory)).filter((name) => name.endsWith(SUFFIX));
      return marks.map((name) => name.slice(0, -SUFFIX.length)).filter(isSandboxId);
    },
  };
}

export type Unsettled = ReturnType<typeof unsettledIn>;

/** Changes of a directory that follow one another this fast may have one and the same time. */
const SAME_TIME_MS = 100;

/** Which deltas have nothing in them, seen at a glance: it is asked after every command, and most commands change nothing. */
export class EmptyDeltas {
  /** When a delta that was found empty had last changed; it is empty as long as that is so. */
  readonly #changedAt = new Map<string, bigint>();

  async has(delta: string): Promise<boolean> {
    const tree = join(delta, "tree");
    const known = this.#changedAt.get(delta);
    if (known !== undefined && known === lastChangeOf(tree)) return true;
    this.#changedAt.delete(delta);
    const lookedAtMs = Date.now();
    try {
      if ((await readdir(tree)).length > 0) return false;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "ENOENT";
    }
    const changedAt = lastChangeOf(tree);
    if (changedAt !== undefined && Number(changedAt / 1_000_000n) < lookedAtMs - SAME_TIME_MS) {
      this.#changedAt.set(delta, changedAt);
    }
    return true;
  }

  forget(delta: string): void {
    this.#changedAt.delete(delta);
  }
}

/** Nobody can set this time. Asked at once: the directory was read before, and while it is mounted the kernel has it in memory. */
function lastChangeOf(directory: string): bigint | undefined {
  try {
    return statSync(directory, { bigint: true }).ctimeNs;
  } catch {
    return undefined;
  }
}
