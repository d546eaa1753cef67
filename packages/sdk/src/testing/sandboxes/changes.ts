import { isSensitive, LEVEL } from "@agentfense/permission";
import { Fault } from "../faults.ts";
import { type Entry, isSame, modeOf, sha256Of, sizeOf } from "../files/entry.ts";
import type { OverlayChange } from "../files/overlay.ts";
import { byPath, isAtOrBelow, workspacePath } from "../files/paths.ts";
import { unifiedDiff } from "./line-diff.ts";
import type { MockSandbox } from "./sandbox.ts";

export interface Change {
  readonly kind: "added" | "modified" | "deleted" | "renamed";
  readonly path: string;
  /** Where it was, when it was renamed; else "". */
  readonly oldPath: string;
  readonly type: Entry["kind"];
  readonly size: number;
  readonly sensitive: boolean;
}

export interface FileDiff {
  readonly change: Change;
  readonly unified: string;
  readonly binary: boolean;
}

/** Files beyond this size are not shown. */
const LARGEST_SHOWN = 1 << 20;

/** None given: everything. */
export function selectionOf(paths: readonly string[]): readonly string[] | undefined {
  return paths.length === 0 ? undefined : paths.map((path) => workspacePath(path, "paths"));
}

/** What the sandbox changed and may read, in path order. A named path without a change is FILE_NOT_FOUND. */
export function listChanges(sandbox: MockSandbox, selection?: readonly string[]): Change[] {
  const changes = withRenames(selectedChanges(sandbox, selection).filter(({ path }) => mayRead(sandbox, path)));
  requireAll(selection, changes);
  return changes;
}

export function selectedChanges(sandbox: MockSandbox, selection: readonly string[] | undefined): OverlayChange[] {
  const all = sandbox.overlay.changes();
  if (selection === undefined) return all;
  return all.filter(({ path }) => selection.some((each) => isAtOrBelow(path, each)));
}

export function* diffChanges(
  sandbox: MockSandbox,
  selection: readonly string[] | undefined,
  { patch }: { readonly patch: boolean },
): Generator<FileDiff> {
  const byName = new Map(sandbox.overlay.changes().map((change) => [change.path, change]));
  for (const change of listChanges(sandbox, selection)) {
    if (change.kind === "renamed") {
      const modes = [byName.get(change.oldPath)?.old, byName.get(change.path)?.now].map((entry) => gitMode(entry!));
      yield { change, binary: false, unified: renameText(change, modes) };
      continue;
    }
    const text = diffText(byName.get(change.path)!);
    if (text === undefined && patch) throw new Fault("INVALID_ARGUMENT", "the mock makes no patches of binary files");
    const differs = `diff --git a${change.path} b${change.path}\nBinary files a${change.path} and b${change.path} differ\n`;
    yield { change, binary: text === undefined, unified: text ?? differs };
  }
}

export function describeChange({ path, old, now }: Pick<OverlayChange, "path" | "old" | "now">): Change {
  const shown = now ?? old!;
  const kind = old === undefined ? "added" : now === undefined ? "deleted" : "modified";
  const sensitive = now !== undefined && isSensitive(path, now.kind === "symlink" ? now.target : undefined);
  return { kind, path, oldPath: "", type: shown.kind, size: sizeOf(shown), sensitive };
}

export function mayRead({ policy }: MockSandbox, path: string): boolean {
  return policy.decide(path).level >= LEVEL.read;
}

/** A file that is gone and one of the same content that is new are one renamed file. */
function withRenames(changes: readonly OverlayChange[]): Change[] {
  const gone = changes.filter(({ old, now }) => now === undefined && old?.kind === "file" && sizeOf(old) > 0);
  const moved = new Map<OverlayChange, OverlayChange>();
  for (const change of changes) {
    const { old, now } = change;
    if (old !== undefined || now?.kind !== "file") continue;
    const at = gone.findIndex((each) => sha256Of(each.old!) === sha256Of(now));
    const [source] = at < 0 ? [] : gone.splice(at, 1);
    if (source !== undefined) moved.set(change, source);
  }
  const sources = new Set(moved.values());
  return changes
    .filter((change) => !sources.has(change))
    .map((change): Change => {
      const source = moved.get(change);
      const described = describeChange(change);
      return source === undefined ? described : { ...described, kind: "renamed", oldPath: source.path };
    })
    .sort(byPath);
}

function requireAll(selection: readonly string[] | undefined, changes: readonly Change[]): void {
  const isMet = (path: string) =>
    changes.some(({ path: at, oldPath }) => isAtOrBelow(at, path) || (oldPath !== "" && isAtOrBelow(oldPath, path)));
  const unmet = selection?.find((path) => !isMet(path));
  if (unmet !== undefined) throw new Fault("FILE_NOT_FOUND", `the sandbox changes nothing at ${unmet}`);
}

/** In the form that `git apply` takes; undefined for what is no text, or too much of it. */
function diffText({ path, old, now }: OverlayChange): string | undefined {
  const sides = [old, now].filter((side) => side !== undefined);
  if (sides.some(({ kind }) => kind === "directory")) return "";
  // A file that became a link, or the other way round, is a deletion and an addition.
  if (old !== undefined && now !== undefined && old.kind !== now.kind) {
    const halves = [
      { path, old, now: undefined },
      { path, old: undefined, now },
    ];
    const texts = halves.map((half) => diffText({ ...half, baseVersion: 0 }));
    return texts.includes(undefined) ? undefined : texts.join("");
  }
  const contents = sides.map(contentOf);
  if (contents.some((content) => content.includes(0) || content.length > LARGEST_SHOWN)) return undefined;
  const [oldMode, newMode] = [old && patchMode(old), now && patchMode(now)];
  const lines = [`diff --git a${path} b${path}`];
  if (old === undefined) lines.push(`new file mode ${newMode}`);
  else if (now === undefined) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  const text = (side: Entry | undefined) => (side === undefined ? "" : contentOf(side).toString("utf8"));
  const hunks = old !== undefined && now !== undefined && isSame(old, now) ? "" : unifiedDiff(text(old), text(now));
  if (hunks !== "") lines.push(`--- ${old ? `a${path}` : "/dev/null"}`, `+++ ${now ? `b${path}` : "/dev/null"}`);
  return `${lines.join("\n")}\n${hunks}`;
}

function renameText({ path, oldPath }: Change, [oldMode, newMode]: readonly string[]): string {
  const lines = [
    `diff --git a${oldPath} b${path}`,
    ...(oldMode === newMode ? [] : [`old mode ${oldMode}`, `new mode ${newMode}`]),
    "similarity index 100%",
    `rename from ${oldPath.slice(1)}`,
    `rename to ${path.slice(1)}`,
  ];
  return `${lines.join("\n")}\n`;
}

function gitMode(entry: Entry): string {
  return modeOf(entry) & 0o100 ? "100755" : "100644";
}

function contentOf(entry: Entry): Buffer {
  if (entry.kind === "symlink") return Buffer.from(entry.target);
  return entry.kind === "file" ? Buffer.from(entry.content) : Buffer.alloc(0);
}

function patchMode(entry: Entry): string {
  return entry.kind === "symlink" ? "120000" : `100${modeOf(entry).toString(8).padStart(3, "0")}`;
}
