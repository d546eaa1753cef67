import { LEVEL, levelName } from "@agentfense/permission";
import type { Conflict, VersionRecord } from "../codebases/codebase.ts";
import type { Draft } from "../codebases/draft.ts";
import { Fault } from "../faults.ts";
import { directoryEntry, type Entry } from "../files/entry.ts";
import type { OverlayChange } from "../files/overlay.ts";
import { ancestorsOf, insidePath } from "../files/paths.ts";
import { type Change, describeChange, listChanges, mayRead, selectedChanges } from "./changes.ts";
import type { MockSandbox } from "./sandbox.ts";

export interface ApplyOutcome {
  readonly change: Change;
  readonly applied: boolean;
  readonly reason: string;
  readonly conflict: boolean;
}

export interface Applied {
  /** 0: nothing was written. */
  readonly version: number;
  readonly outcomes: readonly ApplyOutcome[];
}

/** What a sync after a command has to say. */
export interface SyncReport {
  readonly version: number;
  readonly problems: readonly string[];
}

/** One path that is to be carried over, or why it is not. */
interface Carried {
  readonly change: Change;
  /** Undefined: nothing is to be there. */
  readonly entry: Entry | undefined;
  readonly baseVersion: number;
  reason: string;
}

const HOLDS_PROTECTED = "the directory holds what the rules protect";
const HELD = "held back: the host may run or trust it unasked";
const KEPT = "the codebase keeps what is there";
const UNSTORABLE = "the codebase cannot take it: its name, or what is at or below it there";

/** After each command of a sandbox that syncs by itself. */
export function syncAfterCommand(sandbox: MockSandbox): SyncReport {
  if (sandbox.facts.sync !== "on-exec" || !sandbox.mayWriteCodebase) return { version: 0, problems: [] };
  const { version, carried } = write(sandbox, collect(sandbox, undefined), "sync_completed");
  const problems = carried
    .filter(({ change, reason }) => reason !== "" && sandbox.policy.decide(change.path).level > LEVEL.none)
    .filter(({ change, reason }) => !(change.kind === "deleted" && reason === HOLDS_PROTECTED))
    .map(({ change, reason }) => `${insidePath(change.path)}: ${reason === HOLDS_PROTECTED ? KEPT : reason}`);
  return { version, problems };
}

/** On demand, all or what is named. */
export function applyChanges(
  sandbox: MockSandbox,
  selection: readonly string[] | undefined,
  options: { readonly dryRun: boolean; readonly holdExecutables: boolean },
): Applied {
  refuseSync(sandbox);
  if (selection !== undefined) listChanges(sandbox, selection);
  const collected = collect(sandbox, selection);
  for (const one of options.holdExecutables ? collected : []) {
    if (one.reason === "" && one.change.sensitive) one.reason = HELD;
  }
  const { version, carried, conflicts } = options.dryRun
    ? { version: 0, carried: collected, conflicts: [] }
    : write(sandbox, collected, "changes_applied");
  const conflicting = new Set(conflicts.map(({ path }) => path));
  const outcomes = carried
    .filter(({ change }) => mayRead(sandbox, change.path))
    .map(({ change, reason }) => ({
      change,
      applied: reason === "",
      reason,
      conflict: conflicting.has(change.path),
    }));
  return { version, outcomes };
}

function refuseSync(sandbox: MockSandbox): void {
  if (sandbox.mayWriteCodebase) return;
  const { codebaseVersion } = sandbox.facts;
  const message =
    codebaseVersion === 0
      ? "the sandbox was created with sync never: its changes cannot be applied"
      : `the sandbox is pinned to version ${codebaseVersion}: its changes cannot be applied`;
  throw new Fault("SYNC_REFUSED", message, { details: { sandbox_id: sandbox.id } });
}

/** What is in a directory goes before it, and comes after it. */
function collect(sandbox: MockSandbox, selection: readonly string[] | undefined): Carried[] {
  return selectedChanges(sandbox, selection).flatMap((change) => carriedOf(sandbox, change));
}

function carriedOf(sandbox: MockSandbox, change: OverlayChange): Carried[] {
  const { path, old, now, baseVersion } = change;
  const own: Carried = { change: describeChange(change), entry: now, baseVersion, reason: refusal(sandbox, path) };
  if (own.reason !== "" || old?.kind !== "directory" || now?.kind === "directory") return [own];
  const { tree } = sandbox.codebase;
  const below = tree.below(path).reverse();
  // All or nothing: what is protected below keeps the whole directory.
  if (below.some((each) => refusal(sandbox, each) !== "")) return [{ ...own, reason: HOLDS_PROTECTED }];
  const removed = below.map((each): Carried => {
    const described = describeChange({ path: each, old: tree.get(each), now: undefined });
    return { change: described, entry: undefined, baseVersion, reason: "" };
  });
  return [...removed, own];
}

function refusal({ policy }: MockSandbox, path: string): string {
  const { level } = policy.decide(path);
  if (level >= LEVEL.write) return "";
  return level === LEVEL.none ? "the rules hide this path" : `level ${levelName(level)}`;
}

interface Written {
  readonly version: number;
  readonly carried: readonly Carried[];
  readonly conflicts: readonly Conflict[];
}

/** One version of what may go; then the delta lets go of it, so that it never overwrites newer work. */
function write(sandbox: MockSandbox, carried: readonly Carried[], type: "sync_completed" | "changes_applied"): Written {
  const { codebase, overlay, id } = sandbox;
  const ready = carried.filter(({ reason }) => reason === "");
  const conflicts = ready.flatMap(({ change, entry, baseVersion }): Conflict[] => {
    const foreign = codebase.foreignWork(change.path, baseVersion, id);
    if (foreign === undefined || entry?.kind === "directory" || change.type === "directory") return [];
    return [{ path: change.path, replacedVersion: foreign.version, replacedSandboxId: foreign.sandboxId }];
  });
  const made = codebase.change({ origin: "sync", sandboxId: id, conflicts }, (draft) =>
    carryOver(sandbox, draft, ready),
  );
  for (const { change, reason } of [...ready].reverse()) if (reason === "") overlay.settle(change.path);
  overlay.tidy();
  tell(sandbox, type, made, carried, conflicts);
  return { version: made?.version ?? 0, carried, conflicts };
}

/** What the codebase cannot take is left out, with the reason. */
function carryOver({ codebase }: MockSandbox, draft: Draft, ready: readonly Carried[]): void {
  const { tree } = codebase;
  for (const one of ready.filter(({ entry }) => entry === undefined)) {
    const { path } = one.change;
    if (tree.names(path).length > 0) one.reason = UNSTORABLE;
    else if (tree.get(path) !== undefined) draft.set(path, undefined);
  }
  for (const one of ready) {
    const { entry } = one;
    const { path } = one.change;
    if (entry === undefined) continue;
    const above = ancestorsOf(path);
    const blocked = above.some((each) => (tree.get(each)?.kind ?? "directory") !== "directory");
    const replaced = entry.kind !== "directory" && tree.names(path).length > 0;
    if (blocked || replaced) {
      one.reason = UNSTORABLE;
      continue;
    }
    for (const each of above) if (tree.get(each) === undefined) draft.set(each, directoryEntry());
    draft.put(path, entry);
  }
}

function tell(
  sandbox: MockSandbox,
  type: "sync_completed" | "changes_applied",
  made: VersionRecord | undefined,
  carried: readonly Carried[],
  conflicts: readonly Conflict[],
): void {
  const refused = carried.filter(({ reason }) => reason !== "");
  if (made !== undefined) {
    const sensitive = carried.filter(({ change, reason }) => reason === "" && change.sensitive).length;
    const counts = { changes: carried.length - refused.length, sensitive, refused: refused.length };
    sandbox.tell(type, { data: { version: made.version, ...counts, conflicts: conflicts.length } });
  }
  for (const { path, replacedVersion, replacedSandboxId } of conflicts) {
    const replaced = { replaced_version: replacedVersion, replaced_sandbox: replacedSandboxId };
    sandbox.tell("sync_conflict", {
      level: "warn",
      data: { path: insidePath(path), version: made?.version ?? 0, ...replaced },
    });
  }
  // What is refused stays in the delta and is met by every sync; it is told once.
  const told = sandbox.toldRefusals;
  sandbox.toldRefusals = new Set(refused.map(({ change, reason }) => `${change.path}: ${reason}`));
  for (const { change, reason } of refused) {
    if (told.has(`${change.path}: ${reason}`)) continue;
    const data = { path: insidePath(change.path), change: change.kind, reason };
    sandbox.tell("sync_refused", { level: "warn", data });
  }
}
