import { isUtf8 } from "node:buffer";
import { syscalls } from "@agentfense/fuse";
import { isSensitive, type Rule } from "@agentfense/permission";
import { closing } from "../filesystem/descriptors.ts";
import { textOf } from "../filesystem/names.ts";
import { literal, measure, NO_OBJECT, objectName, openSide, type PatchContent, readAt } from "./binary-patch.ts";
import { ChangesError } from "./changes-error.ts";
import { MODE_BITS, readTarget, sameContent } from "./comparison.ts";
import { type Layers, OpenLayers } from "./places.ts";
import { Selection } from "./selection.ts";
import { unifiedDiff } from "./unified.ts";
import {
  type Audience,
  audienceOf,
  type ChangeKind,
  type FoundChange,
  pathText,
  type Side,
  walkChanges,
} from "./walk.ts";

const { FileType } = syscalls;

export type EntryType = "file" | "directory" | "symlink" | "other";

/** One changed entry, and what changed in it, for people or for git. */
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
  /** The host may run or trust it without being asked to; see isSensitive. */
  readonly sensitive: boolean;
  readonly text: string;
  /** The codebase ignores it: the directory in which it is folded. Nothing of it is compared. Told if folding was asked for. */
  readonly ignoredIn?: string;
  /** Of a patch that is too long to be held: what follows the text, see literals. */
  readonly content?: PatchContent;
}

export interface DiffSpec {
  readonly delta: string;
  /** What it lies on: deltas that snapshots froze, top first. */
  readonly beneath?: readonly string[] | undefined;
  /** Codebase directories, top first. */
  readonly lowers: readonly string[];
  /** Only these, each with all that is below it. One without a change is an error. */
  readonly paths?: readonly string[] | undefined;
  /** What these hide or only let be looked at is left out; absent: all is told. */
  readonly rules?: readonly Rule[] | undefined;
  /** For the owner of the codebase: all that the delta holds, and of removed directories what the sandbox could see. */
  readonly tellsAll?: boolean;
  /** Tell what the codebase's ignore files name, and compare nothing of it. */
  readonly ignores?: boolean;
  /** The paths name single entries, not what is below, and one without a change says nothing. */
  readonly exact?: boolean;
  /**
   * The text is a patch, as `git diff --binary --full-index` has it: binary and large files in full, and nothing of what git
   * does not know (directories, special files, permission bits but the owner's to execute) or refuses (its own files).
   */
  readonly patch?: boolean;
  /** Files beyond this size, on either side, are not compared line by line; default 1 MiB. */
  readonly maxBytes?: number;
}

const DEFAULT_MAX_BYTES = 1 << 20;

/**
 * What a delta changes, in path order, with unified diffs; each file of a removed directory by itself. Renames are not
 * guessed, no symlink is followed. The delta may be in use.
 */
export async function* diffChanges(spec: DiffSpec): AsyncGenerator<FileDiff> {
  const selection = spec.exact ? Selection.exactly(spec.paths ?? []) : Selection.of(spec.paths);
  using layers = new OpenLayers(spec.delta, spec.lowers, spec.beneath);
  const audience = audienceOf(spec);
  if (!spec.exact) await requireChanges(layers, selection, audience);
  const { patch = false, maxBytes = DEFAULT_MAX_BYTES } = spec;
  for await (const change of walkChanges(layers, selection, audience))
    yield await describe(change, { patch, maxBytes });
}

/** Throws unless every path of the selection has a change at or below it. */
export async function requireChanges(layers: Layers, selection: Selection, audience?: Audience): Promise<void> {
  if (selection.namedPaths().length === 0) return;
  for await (const change of walkChanges(layers, selection, audience)) selection.meet(change.names);
  const unmet = selection.unmet();
  if (unmet.length > 0) throw new ChangesError("NO_CHANGE", `the delta changes nothing at ${unmet.join(", ")}`);
}

export function typeOf(stat: syscalls.Stat): EntryType {
  if (stat.type === FileType.REGULAR) return "file";
  if (stat.type === FileType.DIRECTORY) return "directory";
  return stat.type === FileType.SYMLINK ? "symlink" : "other";
}

interface Form {
  readonly patch: boolean;
  readonly maxBytes: number;
}

async function describe(change: FoundChange, form: Form): Promise<FileDiff> {
  const { kind, names, old, now, ignoredIn } = change;
  const path = pathText(names);
  const shown = now ?? old!;
  const type = typeOf(shown.stat);
  const bodies: Body[] = [];
  let [text, after] = ["", ""];
  let files: PatchContent["files"] | undefined;
  for (const part of ignoredIn === undefined ? partsOf(change) : []) {
    if (form.patch && isRefusedByGit(names, [old, now].some(isLink))) continue;
    const body = await bodyOf(part, form);
    bodies.push(body);
    // At most one is long: of a change of type, one half is a link.
    if (files === undefined) text += textOfPart(part, path, body, form);
    else after += textOfPart(part, path, body, form);
    files ??= body.files;
  }
  if (!form.patch && ignoredIn === undefined && [old, now].some((side) => side && !isInPatches(side)))
    text += `${sentence(change)}\n`;
  return {
    kind,
    path,
    type,
    ...(old && typeOf(old.stat) !== type && { oldType: typeOf(old.stat) }),
    size: type === "directory" || type === "other" ? 0 : shown.stat.size,
    ...(old && { oldMode: old.stat.mode & MODE_BITS }),
    ...(now && { newMode: now.stat.mode & MODE_BITS }),
    shows: bodies.map(({ shows }) => shows).find((shows) => shows !== "nothing") ?? "nothing",
    linesAdded: bodies.reduce((sum, { added }) => sum + added, 0),
    linesRemoved: bodies.reduce((sum, { removed }) => sum + removed, 0),
    sensitive: now !== undefined && isSensitive(path, type === "symlink" ? readTarget(now.place) : undefined),
    text,
    ...(ignoredIn !== undefined && { ignoredIn }),
    ...(files && { content: { files, after } }),
  };
}

/** What git knows of a change. A file that became a link, or the other way round, is a deletion and an addition there. */
function partsOf({ names, old, now }: FoundChange): FoundChange[] {
  const [was, is] = [old && isInPatches(old) ? old : undefined, now && isInPatches(now) ? now : undefined];
  if (was && is && was.stat.type === is.stat.type) return [{ kind: "modified", names, old: was, now: is }];
  return [
    ...(was ? [{ kind: "deleted" as const, names, old: was }] : []),
    ...(is ? [{ kind: "added" as const, names, now: is }] : []),
  ];
}

interface Body {
  readonly shows: FileDiff["shows"];
  readonly text: string;
  readonly added: number;
  readonly removed: number;
  /** What git calls the contents, old and new; absent where they are equal. */
  readonly objects?: readonly [old: string, now: string];
  readonly files?: PatchContent["files"];
}

const NOTHING: Body = { shows: "nothing", text: "", added: 0, removed: 0 };

async function bodyOf({ names, old, now }: FoundChange, { patch, maxBytes }: Form): Promise<Body> {
  const sides = [old, now].filter((side) => side !== undefined);
  const onlyMode = old && now && old.stat.type === FileType.REGULAR && old.stat.size === now.stat.size;
  if (onlyMode && (await sameContent(old.place, now.place))) return NOTHING;
  if (sides.some(({ stat }) => stat.size > maxBytes)) {
    return patch ? await longBody(names, old, now) : { ...NOTHING, shows: "too-large" };
  }
  const before = old ? contentOf("codebase", old) : Buffer.alloc(0);
  const after = now ? contentOf("delta", now) : Buffer.alloc(0);
  if (!before || !after) {
    if (patch) throw new ChangesError("DELTA_UNUSABLE", `${pathText(names)} cannot be read`);
    return { ...NOTHING, shows: "binary" };
  }
  const objects = patch
    ? ([old ? objectName(before) : NO_OBJECT, now ? objectName(after) : NO_OBJECT] as const)
    : undefined;
  // Patches are text wherever they go, so in them what is no UTF-8 is binary.
  if ([before, after].some((content) => content.includes(0) || (patch && !isUtf8(content)))) {
    const text = patch ? `GIT binary patch\n${literal(after)}${literal(before)}` : "";
    return { ...NOTHING, shows: "binary", text, ...(objects && { objects }) };
  }
  const diff = unifiedDiff(textOf(before.toString("latin1")), textOf(after.toString("latin1")));
  return { shows: diff.text === "" ? "nothing" : "lines", ...diff, ...(objects && { objects }) };
}

/** A patch whose content is read when its turn comes. */
async function longBody(names: readonly string[], old: Side | undefined, now: Side | undefined): Promise<Body> {
  const before = old && (await measure(old.place, { side: "codebase", names }));
  const after = now && (await measure(now.place, { side: "delta", names }));
  return {
    ...NOTHING,
    shows: "binary",
    text: "GIT binary patch\n",
    objects: [before?.object ?? NO_OBJECT, after?.object ?? NO_OBJECT],
    files: [after?.file, before?.file],
  };
}

/** What stands in a file, or where a link leads; undefined when it cannot be read. */
function contentOf(side: "delta" | "codebase", { place, stat }: Side): Buffer | undefined {
  if (stat.type === FileType.SYMLINK) return Buffer.from(readTarget(place) ?? "", "latin1");
  const current = new syscalls.Stat();
  const fd = openSide(side, place, current);
  if (fd < 0) return undefined;
  using _open = closing(fd);
  return readAt(fd, 0, Math.min(current.size, stat.size));
}

function textOfPart({ old, now }: FoundChange, path: string, body: Body, { patch }: Form): string {
  const [a, b] = [`a${path}`, `b${path}`];
  const modeOf = patch ? gitMode : fullMode;
  const [oldMode, newMode] = [old && modeOf(old.stat), now && modeOf(now.stat)];
  const lines: string[] = [];
  if (old === undefined) lines.push(`new file mode ${newMode}`);
  else if (now === undefined) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  if (body.objects) lines.push(`index ${body.objects.join("..")}${oldMode === newMode ? ` ${oldMode}` : ""}`);
  const [from, to] = [old ? a : "/dev/null", now ? b : "/dev/null"];
  if (body.shows === "lines") lines.push(`--- ${nameOnLine(from)}`, `+++ ${nameOnLine(to)}`);
  const names = `${quotedName(from)} and ${quotedName(to)}`;
  if (body.shows === "binary" && !patch) lines.push(`Binary files ${names} differ`);
  if (body.shows === "too-large") lines.push(`Files ${names} differ: too large to show`);
  // git has no word for a change of other permission bits.
  if (patch && lines.length === 0) return "";
  return `${[`diff --git ${quotedName(a)} ${quotedName(b)}`, ...lines].join("\n")}\n${body.text}`;
}

/** A file that only moved, as git has it: nothing of the content needs to be said. */
export function renameText(path: string, oldPath: string, modes: readonly [old: number, now: number]): string {
  const [oldMode, newMode] = modes.map((mode) => (mode & 0o100 ? "100755" : "100644"));
  return [
    `diff --git ${quotedName(`a${oldPath}`)} ${quotedName(`b${path}`)}`,
    ...(oldMode === newMode ? [] : [`old mode ${oldMode}`, `new mode ${newMode}`]),
    "similarity index 100%",
    `rename from ${quotedName(oldPath.slice(1))}`,
    `rename to ${quotedName(path.slice(1))}`,
    "",
  ].join("\n");
}

function isLink(side: Side | undefined): boolean {
  return side?.stat.type === FileType.SYMLINK;
}

function isInPatches({ stat }: Side): boolean {
  return stat.type === FileType.REGULAR || stat.type === FileType.SYMLINK;
}

/** Directories and special files have no place in a patch; a line says what happened. */
function sentence({ kind, names, old, now, unread }: FoundChange): string {
  const [a, b] = [quotedName(`a${pathText(names)}`), quotedName(`b${pathText(names)}`)];
  if (unread) return `Directory ${now ? b : a} ${kind}; what is in it cannot be read`;
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

function fullMode(stat: syscalls.Stat): string {
  return stat.type === FileType.SYMLINK ? "120000" : `100${octal(stat)}`;
}

function gitMode(stat: syscalls.Stat): string {
  if (stat.type === FileType.SYMLINK) return "120000";
  return stat.mode & 0o100 ? "100755" : "100644";
}

const UNUSUAL = /[\u0000-\u001f"\\\u007f\udc80-\udcff]/u;

const ESCAPES: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\u000b": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  '"': '\\"',
  "\\": "\\\\",
};

/** A name as git writes it (core.quotePath=false): as it is, or in quotes, as in C, when anything unusual is in it. */
function quotedName(name: string): string {
  if (!UNUSUAL.test(name)) return name;
  const escaped = name.replace(new RegExp(UNUSUAL, "gu"), (character) => {
    return ESCAPES[character] ?? `\\${(character.charCodeAt(0) & 0xff).toString(8).padStart(3, "0")}`;
  });
  return `"${escaped}"`;
}

/** For `---` and `+++`: a tab behind a name with a space, so that nobody takes what follows the space for a time. */
function nameOnLine(name: string): string {
  return `${quotedName(name)}${name.includes(" ") ? "\t" : ""}`;
}

/** What names that lead into a repository's own directory look like to git, also on file systems that are not ours. */
const REPOSITORY = /^(\.git|git~1)[ .]*([:\\]|$)/i;
const MODULES = /^(\.gitmodules|gitmod~[1-4])[ .]*([:\\]|$)/i;

/** git takes no patch with such a path: it would write into the repository itself, or a link for a file it trusts. */
export function isRefusedByGit(names: readonly string[], isLink: boolean): boolean {
  const texts = names.map(textOf);
  return texts.some((name) => REPOSITORY.test(name)) || (isLink && texts.some((name) => MODULES.test(name)));
}
