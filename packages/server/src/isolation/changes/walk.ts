import { errnoName, syscalls } from "@agentfense/fuse";
import { compileRules, LEVEL, type Policy, type Rule, type Scope } from "@agentfense/permission";
import { closing } from "../filesystem/descriptors.ts";
import { LEVELS_LIMIT, textOf } from "../filesystem/names.ts";
import { namesIn } from "../filesystem/settlement.ts";
import { copyState } from "../filesystem/xattrs.ts";
import { readAt } from "./binary-patch.ts";
import { ChainDirectory, ownRightsOf } from "./chain.ts";
import { ChangesError } from "./changes-error.ts";
import { type EntryHandle, isBornLater, isUnchanged, MODE_BITS, openRegular, statOf } from "./comparison.ts";
import type { Layers } from "./places.ts";
import type { Selection } from "./selection.ts";

const { FileType, Open } = syscalls;

export type ChangeKind = "added" | "modified" | "deleted";

/** A side of a change: where it is, and what stat says of it. Good until the walk goes on. */
export interface Side {
  readonly place: EntryHandle;
  readonly stat: syscalls.Stat;
}

export interface FoundChange {
  readonly kind: ChangeKind;
  /** Byte strings, from the root down. */
  readonly names: readonly string[];
  readonly old?: Side;
  readonly now?: Side;
  /** What says in the delta that the entry is gone; see markOf. */
  readonly mark?: syscalls.Stat | undefined;
  /** A directory of the delta that could not be read, or lies too deep: what it changes is not told. */
  readonly unread?: true;
  /** The codebase ignores it: the directory in which it is folded. Told if the audience asks. */
  readonly ignoredIn?: string;
}

interface Level {
  /** Of the delta and of what it lies on, top first. */
  readonly deltas: readonly number[];
  readonly lowers: readonly number[];
  readonly names: readonly string[];
  readonly selection: Selection;
  /** Undefined where everything is told. */
  readonly scope: Scope | undefined;
  /** The mark that shuts this directory, or one above, against the codebase: nothing of the codebase's shows here. */
  readonly opaque: syscalls.Stat | undefined;
  readonly tellsAll: boolean;
  /** Undefined where nobody asks. */
  readonly ignoring: Ignoring | undefined;
}

/** Whose eyes a walk is for. */
export interface Audience {
  /** The sandbox's; absent: nothing is hidden from anybody. */
  readonly policy: Policy | undefined;
  /** Of the owner of the codebase: all that the delta holds is told, but the sandbox removed nothing that is hidden from it. */
  readonly tellsAll: boolean;
  /** Wants to know what the codebase ignores. */
  readonly ignores: boolean;
}

/** `rules`: what these hide or only let be looked at is left out, unless the owner asks (`tellsAll`). */
export function audienceOf(spec: {
  readonly rules?: readonly Rule[] | undefined;
  readonly tellsAll?: boolean;
  readonly ignores?: boolean;
}): Audience {
  const { tellsAll = false, ignores = false } = spec;
  return { policy: spec.rules === undefined ? undefined : compileRules(spec.rules), tellsAll, ignores };
}

const EVERYBODY: Audience = { policy: undefined, tellsAll: false, ignores: false };

/**
 * What the delta changes, in path order, each entry of a removed directory too, restricted to a selection and to what the
 * audience may know. No symlink is followed on either side.
 */
export async function* walkChanges(
  layers: Layers,
  selection: Selection,
  { policy, tellsAll, ignores }: Audience = EVERYBODY,
): AsyncGenerator<FoundChange> {
  using _rights = ownRightsOf(layers.trees);
  const root = ChainDirectory.read(layers.trees);
  if (typeof root === "number")
    throw new ChangesError("DELTA_UNUSABLE", `the delta cannot be read: ${errnoName(-root)}`);
  const ignoring = ignores ? { files: [] } : undefined;
  const top = { deltas: layers.trees, lowers: layers.lowers, names: [], selection, scope: policy?.root };
  yield* changesIn({ ...top, opaque: undefined, tellsAll, ignoring }, root);
}

async function* changesIn(level: Level, directory: ChainDirectory): AsyncGenerator<FoundChange> {
  // Between directories others get their turn: a delta can be large.
  await new Promise((resolve) => setImmediate(resolve));
  const mark = directory.mark && statOf(directory.mark);
  const opaque = directory.opaque ? (mark ?? new syscalls.Stat()) : level.opaque;
  const inside = enteringDirectory(level, level.lowers);
  const names = new Set([
    ...directory.names,
    ...directory.whiteouts.keys(),
    ...(opaque === undefined ? [] : namesIn(level.lowers)),
  ]);
  for (const name of [...names].sort()) {
    const selection = level.selection.child(name);
    if (selection.standing === "outside") continue;
    const path = [...level.names, name];
    const scope = level.scope?.child(textOf(name));
    const isHeld = level.tellsAll && (directory.names.has(name) || directory.whiteouts.has(name));
    if (isHidden(scope) && !isHeld) continue;
    const old = find(level.lowers, name);
    const side = inside && directory.names.has(name) ? find([directory.placeOf(name).directory], name) : old;
    const ignoring = inside && ignoringAt(inside, path, side?.stat.type === FileType.DIRECTORY);
    const entry = { ...level, opaque, selection, scope, names: path, ignoring };
    if (directory.names.has(name)) yield* changesAt(entry, directory, name, old);
    else if (old !== undefined) yield* removalsAt(entry, name, { old, mark: markOf(entry, directory, name) }, isHeld);
  }
}

/** An ignore file that the audience may not read says nothing. */
function enteringDirectory(
  { ignoring, scope, tellsAll, names }: Level,
  layers: readonly number[],
): Ignoring | undefined {
  if (ignoring === undefined) return undefined;
  const isKnown = tellsAll || scope === undefined || scope.child(IGNORE_FILE).level >= LEVEL.read;
  return isKnown ? entering(ignoring, layers, names.length) : ignoring;
}

function ignored({ ignoring }: Level): { readonly ignoredIn?: string } {
  return ignoring?.ignoredIn === undefined ? {} : { ignoredIn: ignoring.ignoredIn };
}

function isHidden(scope: Scope | undefined): boolean {
  return scope?.level === LEVEL.none && !scope.mayShowBelow;
}

function tells({ scope, tellsAll }: Level): boolean {
  return tellsAll || scope === undefined || scope.level >= LEVEL.read;
}

/** An entry of the codebase that is gone, and all that went with it; `level` as for changesAt. */
async function* removalsAt(
  level: Level,
  name: string,
  { old, mark }: { readonly old: Side; readonly mark: syscalls.Stat | undefined },
  isHeld = false,
): AsyncGenerator<FoundChange> {
  const { names, selection, scope, tellsAll } = level;
  // Nobody removes what he does not see: of a hidden entry that only stands in a removed directory nothing is told.
  const isTold = tellsAll ? isHeld || scope === undefined || scope.level > LEVEL.none : tells(level);
  const isDirectory = old.stat.type === FileType.DIRECTORY;
  const tooDeep = isDirectory && names.length > LEVELS_LIMIT;
  if (isTold && selection.standing === "within") {
    yield { kind: "deleted", names, old, mark, ...ignored(level), ...(tooDeep && { unread: true as const }) };
  }
  if (isDirectory && !tooDeep) yield* removalsBelow(level, name, mark);
}

/** The whiteout, or the mark that shuts the directory. Of what is below a directory that went, what made that go. */
function markOf({ opaque }: Level, directory: ChainDirectory, name: string): syscalls.Stat | undefined {
  return (directory.whiteouts.has(name) ? statOf(directory.placeOf(name)) : undefined) ?? opaque;
}

/** What is in a directory of the codebase that is gone, or is no directory any more. */
async function* removalsBelow(
  level: Level,
  name: string,
  mark: syscalls.Stat | undefined,
): AsyncGenerator<FoundChange> {
  await new Promise((resolve) => setImmediate(resolve));
  const lowers = level.lowers.map((parent) => syscalls.openat(parent, name, Open.PATH | Open.DIRECTORY));
  using _open = closing(...lowers);
  const open = lowers.filter((fd) => fd >= 0);
  const inside = enteringDirectory(level, open);
  for (const below of [...new Set(namesIn(open))].sort()) {
    const [selection, scope] = [level.selection.child(below), level.scope?.child(textOf(below))];
    const old = find(open, below);
    if (selection.standing === "outside" || isHidden(scope) || old === undefined) continue;
    const names = [...level.names, below];
    const ignoring = inside && ignoringAt(inside, names, old.stat.type === FileType.DIRECTORY);
    yield* removalsAt({ ...level, lowers: open, selection, scope, names, ignoring }, below, { old, mark });
  }
}

/** `level` is that of the directory, but for names, selection and scope, which are the entry's own. */
async function* changesAt(
  level: Level,
  parent: ChainDirectory,
  name: string,
  old: Side | undefined,
): AsyncGenerator<FoundChange> {
  const held = parent.placeOf(name).directory;
  const now = find([held], name);
  if (now === undefined) return;
  const change = {
    kind: old ? ("modified" as const) : ("added" as const),
    names: level.names,
    now,
    ...(old && { old }),
    ...ignored(level),
  };
  const within = level.selection.standing === "within" && tells(level);
  if (now.stat.type !== FileType.DIRECTORY && old?.stat.type === FileType.DIRECTORY) {
    if (within) yield change;
    yield* removalsBelow(level, name, now.stat);
    return;
  }
  if (now.stat.type !== FileType.DIRECTORY) {
    if (!within || (old !== undefined && (await isUnchanged(now.place, old.place)))) return;
    const isOvertaken = old === undefined || isBornLater(old.stat, now.stat);
    const state = isOvertaken ? copyState(held, name, level.names.join("/"), now.stat) : "written";
    if (state !== "untouched") yield change;
    return;
  }
  const merged = old?.stat.type === FileType.DIRECTORY;
  const deltas = parent.openBelow(name);
  const lowers = (merged ? level.lowers : []).map((lower) => syscalls.openat(lower, name, Open.PATH | Open.DIRECTORY));
  using _open = closing(...deltas, ...lowers);
  using _rights = ownRightsOf(deltas);
  const tooDeep = level.names.length > LEVELS_LIMIT;
  const directory = tooDeep ? -1 : ChainDirectory.read(deltas);
  const unread = typeof directory === "number";
  const sameMode = merged && (old.stat.mode & MODE_BITS) === (now.stat.mode & MODE_BITS);
  if (within && (unread || !sameMode)) yield unread ? { ...change, unread } : change;
  if (!unread) yield* changesIn({ ...level, deltas, lowers: lowers.filter((fd) => fd >= 0) }, directory);
}

/** The entry in the first of the directories that has the name. */
function find(directories: readonly number[], name: string): Side | undefined {
  for (const directory of directories) {
    const place = { directory, name };
    const stat = statOf(place);
    if (stat !== undefined) return { place, stat };
  }
  return undefined;
}

/** "/src/a.ts", as text. */
export function pathText(names: readonly string[]): string {
  return `/${names.map(textOf).join("/")}`;
}

// Which changes are among what git ignores, by the codebase's own .gitignore files: what the agent writes into one decides
// nothing until it is in the codebase. Only how changes are listed depends on it. The patterns may still be an agent's, from
// an earlier sync, so they are matched by the rules' own automaton, whose time is bounded whatever they are.

const IGNORE_FILE = ".gitignore";
const LARGEST_FILE = 65_536;
const MOST_PATTERNS = 2000;

/** The ignore files from the top down to a directory, and what they said about one above. */
export interface Ignoring {
  /** The nearest first, as the nearest one that has something to say decides. */
  readonly files: readonly IgnoreFile[];
  /** Something here or above is ignored: in this directory it is folded. */
  readonly ignoredIn?: string | undefined;
}

interface IgnoreFile {
  /** Names above what it speaks of. */
  readonly depth: number;
  readonly forDirectories: Policy;
  readonly forOthers: Policy;
}

/** With the ignore file of a directory, if the first of the layers that has one can be read. */
function entering(ignoring: Ignoring, layers: readonly number[], depth: number): Ignoring {
  if (ignoring.ignoredIn !== undefined) return ignoring;
  for (const directory of layers) {
    const stat = new syscalls.Stat();
    const fd = openRegular({ directory, name: IGNORE_FILE }, stat);
    if (fd < 0) continue;
    const bytes = stat.size > LARGEST_FILE ? undefined : readAt(fd, 0, stat.size);
    syscalls.close(fd);
    if (bytes === undefined) return ignoring;
    return { files: [{ depth, ...readIgnoreFile(bytes.toString("utf8")) }, ...ignoring.files] };
  }
  return ignoring;
}

/** What holds for an entry: `names` are byte strings from the root down. */
function ignoringAt(ignoring: Ignoring, names: readonly string[], isDirectory: boolean): Ignoring {
  if (ignoring.ignoredIn !== undefined) return ignoring;
  const texts = names.map(textOf);
  for (const { depth, forDirectories, forOthers } of ignoring.files) {
    const { level } = (isDirectory ? forDirectories : forOthers).decide(`/${texts.slice(depth).join("/")}`);
    if (level === LEVEL.none) continue;
    if (level !== IGNORED) return ignoring;
    // A single file is folded with others of its directory.
    return { ...ignoring, ignoredIn: `/${(isDirectory ? texts : texts.slice(0, -1)).join("/")}` };
  }
  return ignoring;
}

const IGNORED = LEVEL.write;

/** As rules: write is ignored, view is not, none is not spoken of. The last line that matches decides. */
function readIgnoreFile(text: string): Pick<IgnoreFile, "forDirectories" | "forOthers"> {
  const lines = text.split("\n", MOST_PATTERNS).flatMap((line, index) => ruleOf(line, index) ?? []);
  return {
    forDirectories: compileRules(lines.map(({ rule }) => rule)),
    forOthers: compileRules(lines.filter(({ onlyDirectories }) => !onlyDirectories).map(({ rule }) => rule)),
  };
}

function ruleOf(line: string, index: number): { readonly rule: Rule; readonly onlyDirectories: boolean } | undefined {
  const [, negation, body = "", slash] =
    /^(!?)(.*?)(\/?)$/.exec(line.replace(/\r$/, "").replace(/(?<!\\)[ \t]+$/, "")) ?? [];
  if (body === "" || line.startsWith("#")) return undefined;
  // Braces are letters to git.
  const pattern = body
    .replace(/^\\([!#])/, "$1")
    .replace(/\\.|[{}]/g, (found) => (found.length > 1 ? found : `\\${found}`));
  const rule: Rule = {
    pattern: pattern.startsWith("!") ? `\\${pattern}` : pattern,
    permission: negation === "" ? "write" : "view",
    type: "glob",
    priority: index,
  };
  try {
    compileRules([rule]);
  } catch {
    return undefined; // git would have it match nothing
  }
  return { rule, onlyDirectories: slash !== "" };
}
