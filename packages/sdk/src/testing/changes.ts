import { isSensitive, LEVEL } from "@agentfense/permission";
import { ChangeKind, EntryKind } from "@agentfense/protocol/codebase";
import type { ChangeSchema, FileDiffSchema } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Entry, sha256Of, targetOf, textOf } from "./codebase.ts";
import { Fault } from "./faults.ts";
import type { OverlayChange } from "./overlay.ts";
import { isAtOrBelow, workspacePath } from "./path-tree.ts";
import type { MockSandbox } from "./sandbox.ts";

export type Change = MessageInitShape<typeof ChangeSchema> & { readonly path: string; readonly oldPath?: string };

/** Files beyond this size are not shown. */
const LARGEST_SHOWN = 1 << 20;

const TYPES = { file: EntryKind.FILE, directory: EntryKind.DIRECTORY, symlink: EntryKind.SYMLINK } as const;

/** None given: everything. */
export function selectedChanges(sandbox: MockSandbox, paths: readonly string[]): OverlayChange[] {
  const selection = paths.map((path) => workspacePath(path, "paths"));
  const isSelected = ({ path }: OverlayChange) =>
    selection.length === 0 || selection.some((each) => isAtOrBelow(path, each));
  return sandbox.overlay.changes().filter(isSelected);
}

/** What the sandbox changed and may read, in path order. A named path without a change is FILE_NOT_FOUND. */
export function listChanges(sandbox: MockSandbox, paths: readonly string[] = []): Change[] {
  return readableChanges(sandbox, paths).map(({ message }) => message);
}

export function diffChanges(
  sandbox: MockSandbox,
  paths: readonly string[],
  { patch }: { readonly patch: boolean },
): MessageInitShape<typeof FileDiffSchema>[] {
  return readableChanges(sandbox, paths).map(({ message: change, change: { path, old, now }, source }) => {
    if (source !== undefined) return { change, unified: renameText(source.path, path) };
    const unified = diffText(path, old, now);
    if (unified !== undefined) return { change, unified };
    if (patch) throw new Fault("RUNTIME_UNAVAILABLE", "the mock engine makes no patches of binary files");
    const differs = `diff --git a${path} b${path}\nBinary files a${path} and b${path} differ\n`;
    return { change, binary: true, unified: differs };
  });
}

export function describeChange({ path, old, now }: Pick<OverlayChange, "path" | "old" | "now">): Change {
  const shown = (now ?? old)!;
  const kind = old === undefined ? ChangeKind.ADDED : now === undefined ? ChangeKind.DELETED : ChangeKind.MODIFIED;
  const sensitive = now !== undefined && isSensitive(path, targetOf(now) || undefined);
  return { kind, path, type: TYPES[shown.kind], size: BigInt(shown.content.length), sensitive };
}

export function mayRead({ policy }: MockSandbox, path: string): boolean {
  return policy.decide(path).level >= LEVEL.read;
}

interface ReadableChange {
  readonly message: Change;
  readonly change: OverlayChange;
  /** Where a renamed file was. */
  readonly source: OverlayChange | undefined;
}

/** A file that is gone and one of the same content that is new are one renamed file. */
function readableChanges(sandbox: MockSandbox, paths: readonly string[]): ReadableChange[] {
  const changes = selectedChanges(sandbox, paths).filter(({ path }) => mayRead(sandbox, path));
  const unmet = paths.find((each) => !changes.some(({ path }) => isAtOrBelow(path, workspacePath(each))));
  if (unmet !== undefined) throw new Fault("FILE_NOT_FOUND", `the sandbox changes nothing at ${unmet}`);
  const gone = changes.filter(({ old, now }) => now === undefined && old?.kind === "file" && old.content.length > 0);
  const sources = new Map<OverlayChange, OverlayChange>();
  for (const change of changes) {
    if (change.old !== undefined || change.now?.kind !== "file") continue;
    const at = gone.findIndex(({ old }) => sha256Of(old!) === sha256Of(change.now!));
    if (at >= 0) sources.set(change, gone.splice(at, 1)[0]!);
  }
  const moved = new Set(sources.values());
  const shown = changes.filter((change) => !moved.has(change));
  return shown.map((change) => {
    const source = sources.get(change);
    const renamed = source === undefined ? {} : { kind: ChangeKind.RENAMED, oldPath: source.path };
    return { message: { ...describeChange(change), ...renamed }, change, source };
  });
}

/** In the form that `git apply` takes; undefined for what is no text, or too much of it. */
function diffText(path: string, old: Entry | undefined, now: Entry | undefined): string | undefined {
  if (old?.kind === "directory" || now?.kind === "directory") return "";
  const [before, after] = [textOf(old), textOf(now)];
  if ([before, after].some((text) => text.includes("\0") || text.length > LARGEST_SHOWN)) return undefined;
  const [oldMode, newMode] = [old && gitMode(old), now && gitMode(now)];
  const lines = [`diff --git a${path} b${path}`];
  if (old === undefined) lines.push(`new file mode ${newMode}`);
  else if (now === undefined) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  const hunk = unifiedHunk(linesOf(before), linesOf(after));
  if (hunk !== "") lines.push(`--- ${old ? `a${path}` : "/dev/null"}`, `+++ ${now ? `b${path}` : "/dev/null"}`);
  return `${lines.join("\n")}\n${hunk}`;
}

function renameText(from: string, to: string): string {
  const names = `rename from ${from.slice(1)}\nrename to ${to.slice(1)}\n`;
  return `diff --git a${from} b${to}\nsimilarity index 100%\n${names}`;
}

const CONTEXT = 3;

/** One hunk, from the first line that differs to the last: right, and not always the shortest. */
function unifiedHunk(old: readonly string[], now: readonly string[]): string {
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && old[head] === now[head]) head += 1;
  if (head === old.length && head === now.length) return "";
  let tail = 0;
  while (tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const from = Math.max(0, head - CONTEXT);
  const rest = Math.max(0, tail - CONTEXT);
  const [removed, added] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  const rows = [
    ...old.slice(from, head).map((line) => ` ${line}`),
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    ...old.slice(old.length - tail, old.length - rest).map((line) => ` ${line}`),
  ].map((row) => (row.endsWith("\n") ? row : `${row}\n\\ No newline at end of file\n`));
  return `@@ -${range(from, old.length - rest)} +${range(from, now.length - rest)} @@\n${rows.join("")}`;
}

function range(from: number, to: number): string {
  if (to === from) return `${from},0`;
  return to === from + 1 ? String(to) : `${from + 1},${to - from}`;
}

/** Each with its end. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function gitMode({ kind, mode }: Entry): string {
  return kind === "symlink" ? "120000" : mode & 0o100 ? "100755" : "100644";
}
