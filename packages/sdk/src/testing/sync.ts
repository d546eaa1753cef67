import { LEVEL, levelName } from "@agentfense/permission";
import { type ApplyChangesResponseSchema, SyncMode } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Change, describeChange, listChanges, mayRead, selectedChanges } from "./changes.ts";
import { type Entry, isEqual, putEntry } from "./codebase.ts";
import { Fault } from "./faults.ts";
import { insidePath } from "./path-tree.ts";
import type { MockSandbox } from "./sandbox.ts";

/** One path that is to be carried over, or why it is not. */
interface Carried {
  readonly change: Change;
  /** Undefined: nothing is to be there. */
  readonly entry: Entry | undefined;
  /** Somebody else changed it since the sandbox last saw it. */
  readonly conflict: boolean;
  readonly reason: string;
}

const HOLDS_PROTECTED = "the directory holds what the rules protect";
const HELD = "held back: the host may run or trust it unasked";

/** What a sync after a command has to say. */
export interface SyncReport {
  readonly syncedVersion: bigint;
  readonly syncProblems: string[];
}

/** After each command and file call of a sandbox that syncs by itself. */
export function syncAfterCommand(sandbox: MockSandbox): SyncReport {
  if (sandbox.message.sync !== SyncMode.ON_EXEC || !sandbox.mayWriteCodebase) {
    return { syncedVersion: 0n, syncProblems: [] };
  }
  const carried = collect(sandbox, []);
  const made = write(sandbox, carried, "sync_completed");
  const syncProblems = carried
    .filter(({ change, reason }) => reason !== "" && sandbox.policy.decide(change.path).level > LEVEL.none)
    .map(({ change, reason }) => `${insidePath(change.path)}: ${reason}`);
  return { syncedVersion: BigInt(made), syncProblems };
}

/** On demand, all or what is named. */
export function applyChanges(
  sandbox: MockSandbox,
  paths: readonly string[],
  options: { readonly dryRun: boolean; readonly holdExecutables: boolean },
): MessageInitShape<typeof ApplyChangesResponseSchema> {
  if (!sandbox.mayWriteCodebase) {
    throw new Fault("SYNC_REFUSED", "the sandbox is pinned to a version, or was created with sync never");
  }
  if (paths.length > 0) listChanges(sandbox, paths);
  const isHeld = ({ reason, change }: Carried) => options.holdExecutables && reason === "" && change.sensitive === true;
  const carried = collect(sandbox, paths).map((one) => (isHeld(one) ? { ...one, reason: HELD } : one));
  const version = BigInt(options.dryRun ? 0 : write(sandbox, carried, "changes_applied"));
  const outcomes = carried
    .filter(({ change }) => mayRead(sandbox, change.path))
    .map(({ change, conflict, reason }) => {
      const sensitive = change.sensitive === true;
      return { change, applied: reason === "", reason, sensitive, conflict: conflict && !options.dryRun };
    });
  return { version, outcomes };
}

function collect(sandbox: MockSandbox, paths: readonly string[]): Carried[] {
  const { codebase } = sandbox;
  const { tree } = codebase;
  return selectedChanges(sandbox, paths).map((one) => {
    const { path, old, now, baseVersion } = one;
    // All or nothing: what is protected below keeps a whole directory.
    const goes = old?.kind === "directory" && now?.kind !== "directory" ? tree.below(path) : [];
    const isProtected = goes.some((each) => refusal(sandbox, each) !== "");
    const reason = refusal(sandbox, path) || (isProtected ? HOLDS_PROTECTED : "");
    const conflict = old?.kind !== "directory" && !isEqual(codebase.at(baseVersion).get(path), old);
    return { change: describeChange(one), entry: now, conflict, reason };
  });
}

function refusal({ policy }: MockSandbox, path: string): string {
  const { level } = policy.decide(path);
  if (level >= LEVEL.write) return "";
  return level === LEVEL.none ? "the rules hide this path" : `level ${levelName(level)}`;
}

/** One version of what may go; then the sandbox lets go of it, so that it never overwrites newer work. */
function write(sandbox: MockSandbox, carried: readonly Carried[], type: "sync_completed" | "changes_applied"): number {
  const ready = carried.filter(({ reason }) => reason === "");
  const version = sandbox.codebase.change((tree) => {
    for (const { change, entry } of ready) if (entry === undefined) tree.remove(change.path);
    for (const { change, entry } of ready) if (entry !== undefined) putEntry(tree, change.path, entry);
  });
  sandbox.overlay.tidy();
  if (version === 0) return version;
  const conflicts = ready.filter(({ conflict }) => conflict);
  const sensitive = ready.filter(({ change }) => change.sensitive).length;
  const refused = carried.length - ready.length;
  const counts = { changes: ready.length, sensitive, refused, conflicts: conflicts.length };
  sandbox.tell(type, { data: { version, ...counts } });
  for (const { change } of conflicts) {
    sandbox.tell("sync_conflict", { level: "warn", data: { path: insidePath(change.path), version } });
  }
  return version;
}
