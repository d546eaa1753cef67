import { syscalls } from "@agentfense/fuse";
import { compileRules, type Policy, type Rule } from "@agentfense/permission";
import { textOf } from "../filesystem/names.ts";
import { MODE_BITS, openRegular, readTarget, sameContent } from "./comparison.ts";
import { ChangesError } from "./errors.ts";
import { OpenLayers } from "./places.ts";
import { Selection } from "./selection.ts";
import { isSensitive } from "./sensitive.ts";
import { unifiedDiff } from "./unified.ts";
import { type ChangeKind, type FoundChange, pathText, type Side, walkChanges } from "./walk.ts";

const { FileType } = syscalls;

export type EntryType = "file" | "directory" | "symlink" | "other";

/** One changed entry, and what changed in it as text that `git apply` takes. */
export interface FileDiff {
  readonly kind: ChangeKind;
  /** "/src/a.ts"; bytes that are not UTF-8 are lone surrogates U+DC80 to U+DCFF, here and in the text. */
  readonly path: string;
  /** Of what is there now; of what was, for a deletion. */
  readonly type: EntryType;
  readonly oldType?: EntryType;
  /** Of the new content; of what was there, for a deletion. */
  readonly size: number;
  readonly oldMode?: number;
  readonly newMode?: number;
  /** What the text shows: lines, or only that something differs. */
  readonly shows: "lines" | "binary" | "too-large" | "nothing";
  readonly linesAdded: number;
  readonly linesRemoved: number;
  /** The host may run or trust it without being asked to; see sensitive.ts. */
  readonly sensitive: boolean;
  readonly text: string;
}

export interface DiffSpec {
  readonly delta: string;
  /** Codebase directories, top first. */
  readonly lowers: readonly string[];
  /** Only these, each with all that is below it. One without a change is an error. */
  readonly paths?: readonly string[] | undefined;
  /** What these hide or only let be looked at is left out; absent: all is told. */
  readonly rules?: readonly Rule[] | undefined;
  /** Files beyond this size, on either side, are not shown; default 1 MiB. */
  readonly maxBytes?: number;
}

const DEFAULT_MAX_BYTES = 1 << 20;

/**
 * What a delta changes, in path order, with unified diffs. Renames are not guessed, no symlink is followed. A deleted
 * directory is one change without text: it may hold what the rules hide from the sandbox. The delta may be in use.
 */
export async function* diffChanges(spec: DiffSpec): AsyncGenerator<FileDiff> {
  const selection = Selection.of(spec.paths);
  using layers = new OpenLayers(spec.delta, spec.lowers);
  const policy = spec.rules === undefined ? undefined : compileRules(spec.rules);
  await requireChanges(layers, selection, policy);
  for await (const change of walkChanges(layers, selection, policy))
    yield await describe(change, spec.maxBytes ?? DEFAULT_MAX_BYTES);
}

/** Throws unless every path of the selection has a change at or below it. */
export async function requireChanges(layers: OpenLayers, selection: Selection, policy?: Policy): Promise<void> {
  if (selection.namedPaths().length === 0) return;
  for await (const change of walkChanges(layers, selection, policy)) selection.meet(change.names);
  const unmet = selection.unmet();
  if (unmet.length > 0) throw new ChangesError("NO_CHANGE", `the delta changes nothing at ${unmet.join(", ")}`);
}

export function typeOf(stat: syscalls.Stat): EntryType {
  if (stat.type === FileType.REGULAR) return "file";
  if (stat.type === FileType.DIRECTORY) return "directory";
  return stat.type === FileType.SYMLINK ? "symlink" : "other";
}

async function describe(change: FoundChange, maxBytes: number): Promise<FileDiff> {
  const { kind, names, old, now } = change;
  const path = pathText(names);
  const shown = now ?? old!;
  const type = typeOf(shown.stat);
  const parts: { part: FoundChange; body: Body }[] = [];
  for (const part of partsOf(change)) parts.push({ part, body: await bodyOf(part, maxBytes) });
  return {
    kind,
    path,
    type,
    ...(old && typeOf(old.stat) !== type && { oldType: typeOf(old.stat) }),
    size: type === "directory" || type === "other" ? 0 : shown.stat.size,
    ...(old && { oldMode: old.stat.mode & MODE_BITS }),
    ...(now && { newMode: now.stat.mode & MODE_BITS }),
    shows: parts.map(({ body }) => body.shows).find((shows) => shows !== "nothing") ?? "nothing",
    linesAdded: parts.reduce((sum, { body }) => sum + body.added, 0),
    linesRemoved: parts.reduce((sum, { body }) => sum + body.removed, 0),
    sensitive: now !== undefined && isSensitive(path, type === "symlink" ? readTarget(now.place) : undefined),
    text: parts.map(({ part, body }) => textOfChange(part, path, body)).join(""),
  };
}

/** A file that became a link, or the other way round, is a deletion and an addition, as in git. */
function partsOf(change: FoundChange): FoundChange[] {
  const { names, old, now } = change;
  if (!old || !now || old.stat.type === now.stat.type || !isInPatches(old) || !isInPatches(now)) return [change];
  return [
    { kind: "deleted", names, old },
    { kind: "added", names, now },
  ];
}

interface Body {
  readonly shows: FileDiff["shows"];
  readonly text: string;
  readonly added: number;
  readonly removed: number;
}

const NOTHING: Body = { shows: "nothing", text: "", added: 0, removed: 0 };

async function bodyOf({ old, now }: FoundChange, maxBytes: number): Promise<Body> {
  const sides = [old, now].filter((side) => side !== undefined);
  if (!sides.every(isInPatches)) return NOTHING;
  const onlyMode = old && now && old.stat.type === FileType.REGULAR && old.stat.size === now.stat.size;
  if (onlyMode && (await sameContent(old.place, now.place))) return NOTHING;
  if (sides.some(({ stat }) => stat.size > maxBytes)) return { ...NOTHING, shows: "too-large" };
  const contents = [old, now].map((side) => (side ? contentOf(side) : Buffer.alloc(0)));
  const [before, after] = contents;
  if (!before || !after || contents.some((content) => content?.includes(0))) return { ...NOTHING, shows: "binary" };
  const diff = unifiedDiff(textOf(before.toString("latin1")), textOf(after.toString("latin1")));
  return diff.text === "" ? NOTHING : { shows: "lines", ...diff };
}

/** What stands in a file, or where a link leads; undefined when it cannot be read. */
function contentOf({ place, stat }: Side): Buffer | undefined {
  if (stat.type === FileType.SYMLINK) return Buffer.from(readTarget(place) ?? "", "latin1");
  const fd = openRegular(place);
  if (fd < 0) return undefined;
  try {
    const content = Buffer.alloc(stat.size);
    let filled = 0;
    while (filled < content.length) {
      const read = syscalls.pread(fd, content.subarray(filled), content.length - filled, filled);
      if (read < 0) return undefined;
      if (read === 0) break; // shorter by now
      filled += read;
    }
    return content.subarray(0, filled);
  } finally {
    syscalls.close(fd);
  }
}

function textOfChange(change: FoundChange, path: string, body: Body): string {
  const { old, now } = change;
  const [a, b] = [quoted(`a${path}`), quoted(`b${path}`)];
  if ([old, now].some((side) => side && !isInPatches(side))) return `${sentence(change, a, b)}\n`;
  const lines = [`diff --git ${a} ${b}`];
  const [oldMode, newMode] = [old && patchMode(old.stat), now && patchMode(now.stat)];
  if (old === undefined) lines.push(`new file mode ${newMode}`);
  else if (now === undefined) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  const [from, to] = [old ? a : "/dev/null", now ? b : "/dev/null"];
  if (body.shows === "lines") lines.push(`--- ${from}`, `+++ ${to}`);
  if (body.shows === "binary") lines.push(`Binary files ${from} and ${to} differ`);
  if (body.shows === "too-large") lines.push(`Files ${from} and ${to} differ: too large to show`);
  return `${lines.join("\n")}\n${body.text}`;
}

function isInPatches({ stat }: Side): boolean {
  return stat.type === FileType.REGULAR || stat.type === FileType.SYMLINK;
}

/** Directories and special files have no place in a patch; a line says what happened. */
function sentence({ kind, old, now, unread }: FoundChange, a: string, b: string): string {
  if (unread) return `Directory ${b} ${kind}; what is in it cannot be read`;
  if (now === undefined) return `${capital(old!)} ${a} deleted`;
  if (old === undefined) return `${capital(now)} ${b} added, mode ${octal(now.stat)}`;
  const [before, after] = [typeOf(old.stat), typeOf(now.stat)];
  if (before !== after) return `${capital(old)} ${a} ${kind}: now a ${after === "other" ? "special file" : after}`;
  return `${capital(now)} ${b} ${kind}: mode ${octal(old.stat)} is now ${octal(now.stat)}`;
}

function capital({ stat }: Side): string {
  return { file: "File", directory: "Directory", symlink: "Symlink", other: "Special file" }[typeOf(stat)];
}

function octal(stat: syscalls.Stat): string {
  return (stat.mode & MODE_BITS).toString(8).padStart(3, "0");
}

function patchMode(stat: syscalls.Stat): string {
  return stat.type === FileType.SYMLINK ? "120000" : `100${octal(stat)}`;
}

/** A name as git writes it: as it is, or in quotes with octal bytes when it has anything unusual in it. */
function quoted(name: string): string {
  if (!/[\u0000-\u001f"\\\u007f\udc80-\udcff]/u.test(name)) return name;
  const escaped = name.replace(/[\u0000-\u001f"\\\u007f\udc80-\udcff]/gu, (character) => {
    if (character === '"' || character === "\\") return `\\${character}`;
    return `\\${(character.charCodeAt(0) & 0xff).toString(8).padStart(3, "0")}`;
  });
  return `"${escaped}"`;
}
