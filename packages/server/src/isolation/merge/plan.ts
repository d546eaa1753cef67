import type { Driver } from "./drivers.ts";
import { type Favour, type Hunk, mergeText } from "./text.ts";

// The merge of trees, as data: what several sides made of what each started from becomes a list of steps on the tree that
// they are brought into, and a list of conflicts. It reads nothing itself and changes nothing. Paths are byte strings
// without a leading slash; `Content` stands for the content of a file that somebody else can read.

export type Entry<Content> =
  | { readonly kind: "file"; readonly mode: number; readonly content: Content }
  | { readonly kind: "symlink"; readonly target: string }
  | { readonly kind: "directory"; readonly mode: number }
  /** A device, fifo or socket: nothing that is ever merged. */
  | { readonly kind: "other" };

export interface Contents<Content> {
  size(content: Content): number;
  same(a: Content, b: Content): Promise<boolean>;
  /** As a byte string. */
  read(content: Content): Promise<string>;
}

/** The tree that the sides are brought into. */
export interface MergeTarget<Content> {
  readonly name: string;
  entry(path: string): Entry<Content> | undefined;
  /** Of a directory; "" is the root. */
  names(path: string): readonly string[];
}

export interface SideChange<Content> {
  readonly path: string;
  /** What the side started from; "unknown" when that is not kept, and is not what the target has now. */
  readonly base: Entry<Content> | undefined | "unknown";
  readonly now: Entry<Content> | undefined;
}

export interface MergeSide<Content> {
  readonly name: string;
  readonly changes: readonly SideChange<Content>[];
}

/**
 * Why two sides cannot both have their way.
 *
 *   text       both changed the same lines
 *   added      both made the file, and not the same
 *   deleted    one deleted what the other changed
 *   type       both made it something else: a file, a link
 *   directory  a file where another has a directory
 *   link       both made the link lead elsewhere
 *   mode       both changed the permission bits
 *   binary     both changed what is no text
 *   large      both changed it, and it is too large to be merged
 *   whole      both changed it, and it is never merged line by line, or what came of that would be broken
 *   outdated   the target's has changed since, and what the side started from is not kept
 */
export type ConflictKind =
  | "text"
  | "added"
  | "deleted"
  | "type"
  | "directory"
  | "link"
  | "mode"
  | "binary"
  | "large"
  | "whole"
  | "outdated";

/** What a side has there: an entry, merged text (a string) for its content where it comes of several. */
export type MergedEntry<Content> = Entry<Content | string>;

export interface Conflict<Content> {
  readonly path: string;
  readonly kind: ConflictKind;
  /** The names of the two that disagree: of the target, or of the sides that were merged into it so far, and of another. */
  readonly sides: readonly [ours: string, theirs: string];
  readonly base: Entry<Content> | undefined | "unknown";
  readonly ours: MergedEntry<Content> | undefined;
  readonly theirs: MergedEntry<Content> | undefined;
  /** Of texts. */
  readonly hunks: readonly Hunk[];
  /** How it was settled; undefined: it was not, and nothing is to be done at the path. */
  readonly settled: Favour | "markers" | undefined;
}

interface StepAt<Content> {
  readonly path: string;
  /** What stands there before. */
  readonly old: Entry<Content> | undefined;
  /** The sides that changed the path, by their places in the list. */
  readonly sides: readonly number[];
}

export type Step<Content> = StepAt<Content> &
  (
    | { readonly kind: "remove" }
    | { readonly kind: "directory"; readonly mode: number }
    | { readonly kind: "file"; readonly mode: number; readonly content: Content | string }
    | { readonly kind: "link"; readonly target: string }
  );

export interface MergePlan<Content> {
  /** In an order in which they can be carried out: removals from below, then directories from above, then what is in them. */
  readonly steps: readonly Step<Content>[];
  /** In path order. */
  readonly conflicts: readonly Conflict<Content>[];
}

export interface MergeOptions {
  /** How conflicts are settled where that can be done so. */
  readonly favour?: Favour | undefined;
  /** Lay conflicts of text out with markers. */
  readonly markers?: boolean | undefined;
  /** How what both sides changed at a path is merged; line by line unless it says otherwise. */
  readonly driverFor?: ((path: string) => Driver) | undefined;
}

export interface MergeInput<Content extends object> {
  readonly target: MergeTarget<Content>;
  /** Each is merged into what came of those before. */
  readonly sides: readonly MergeSide<Content>[];
  readonly contents: Contents<Content>;
  readonly options?: MergeOptions;
  readonly signal?: AbortSignal | undefined;
}

/** Larger files are not merged line by line. */
const LARGEST_TEXT = 4 << 20;
const MOST_LINES = 200_000;
/** Of all texts that come of merging, which are held until they are written. */
const MERGED_BYTES_LIMIT = 128 << 20;

const PATHS_A_TURN = 32;
const DIRECTORY_MODE = 0o755;

export async function planMerge<Content extends object>(input: MergeInput<Content>): Promise<MergePlan<Content>> {
  const planning = new Planning(input);
  await planning.fold();
  return planning.finish();
}

/** A path that a side changed, or that is in the way of one, and what has become of it so far. */
interface Node<Content> {
  readonly path: string;
  readonly old: Entry<Content> | undefined;
  /** What is there if it is no directory. */
  leaf: MergedEntry<Content> | undefined;
  /** The mode of the directory that is there. */
  directory: number | undefined;
  readonly sides: number[];
  readonly children: Set<string>;
  isOpen: boolean;
}

class Planning<Content extends object> {
  readonly #input: MergeInput<Content>;
  readonly #options: MergeOptions;
  readonly #nodes = new Map<string, Node<Content>>();
  readonly #conflicts: Conflict<Content>[] = [];
  readonly #surviving = new Map<string, boolean>();
  readonly #contested = new Set<string>();
  #mergedBytes = 0;

  constructor(input: MergeInput<Content>) {
    this.#input = input;
    this.#options = input.options ?? {};
  }

  async fold(): Promise<void> {
    const byPath = new Map<string, { readonly side: number; readonly change: SideChange<Content> }[]>();
    for (const [side, { changes }] of this.#input.sides.entries()) {
      for (const change of changes) {
        const known = byPath.get(change.path);
        if (known === undefined) byPath.set(change.path, [{ side, change }]);
        else known.push({ side, change });
      }
    }
    let paths = 0;
    for (const [path, changes] of [...byPath].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (paths++ % PATHS_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      this.#input.signal?.throwIfAborted();
      const node = this.#nodeAt(path);
      for (const { side, change } of changes) await this.#mergeChange(node, side, change);
    }
  }

  /** The node of a path, and those above it that are no directories in the target. */
  #nodeAt(path: string): Node<Content> {
    const known = this.#nodes.get(path);
    if (known !== undefined) return known;
    const old = this.#input.target.entry(path);
    const node: Node<Content> = {
      path,
      old,
      leaf: leafOf(old),
      directory: directoryOf(old),
      sides: [],
      children: new Set(),
      isOpen: false,
    };
    this.#nodes.set(path, node);
    const end = path.lastIndexOf("/");
    if (end < 0) return node;
    const above = path.slice(0, end);
    const isPlain = !this.#nodes.has(above) && this.#input.target.entry(above)?.kind === "directory";
    if (!isPlain) this.#nodeAt(above).children.add(path);
    return node;
  }

  async #mergeChange(node: Node<Content>, side: number, { base, now }: SideChange<Content>): Promise<void> {
    const names = [this.#ourName(node), this.#input.sides[side]!.name] as const;
    node.sides.push(side);
    this.#mergeDirectory(node, names, base, now);
    const [ours, theirs] = [node.leaf, leafOf(now)];
    const start = base === "unknown" ? base : leafOf(base);
    if (ours === undefined && theirs === undefined) return;
    const {
      result,
      conflict,
      hunks = [],
      settled,
    } = await this.#mergeLeaves(node.path, { base: start, ours, theirs, names });
    if (conflict === undefined) node.leaf = result;
    else {
      this.#conflicts.push({ path: node.path, kind: conflict, sides: names, base, ours, theirs: now, hunks, settled });
      if (settled === undefined) node.isOpen = true;
      else node.leaf = result;
    }
  }

  #mergeDirectory(
    node: Node<Content>,
    sides: readonly [string, string],
    base: SideChange<Content>["base"],
    now: Entry<Content> | undefined,
  ): void {
    const [start, ours, theirs] = [
      base === "unknown" ? undefined : directoryOf(base),
      node.directory,
      directoryOf(now),
    ];
    if (ours === theirs || theirs === start) return;
    // A directory that somebody still wants stays.
    if (ours === start || ours === undefined) node.directory = theirs;
    else if (theirs !== undefined) {
      const { favour } = this.#options;
      const settled = favour === "union" ? undefined : favour;
      if (settled === undefined) node.isOpen = true;
      const entry = { kind: "directory", mode: ours } as const;
      this.#conflicts.push({
        path: node.path,
        kind: "mode",
        sides,
        base,
        ours: entry,
        theirs: now,
        hunks: [],
        settled,
      });
      if (settled === "theirs") node.directory = theirs;
    }
  }

  async #mergeLeaves(path: string, three: Three<Content>): Promise<Merging<Content>> {
    const { base, ours, theirs } = three;
    if (await this.#isSame(ours, theirs)) return { result: ours };
    if (base !== "unknown") {
      if (await this.#isSame(base, ours)) return { result: theirs };
      if (await this.#isSame(base, theirs)) return { result: ours };
    }
    const driver = this.#options.driverFor?.(path) ?? "text";
    if (driver === "ours") return { result: ours };
    if (driver === "theirs") return { result: theirs };
    if (base === "unknown") return await this.#mergeUnknown(three, driver);
    if (ours === undefined || theirs === undefined) return this.#choice(three, "deleted");
    if (ours.kind !== theirs.kind) return this.#choice(three, "type");
    if (ours.kind !== "file" || theirs.kind !== "file") return this.#choice(three, "link");
    return await this.#mergeFiles({ base: base?.kind === "file" ? base : undefined, ours, theirs }, three, driver);
  }

  /** It can be settled by choice, or by showing all of both. */
  async #mergeUnknown(three: Three<Content>, driver: Driver): Promise<Merging<Content>> {
    const { ours, theirs } = three;
    const choice = this.#choice(three, "outdated");
    if (choice.settled !== undefined || ours?.kind !== "file" || theirs?.kind !== "file") return choice;
    const shown = await this.#mergeFiles({ base: undefined, ours, theirs }, three, driver);
    if (shown.conflict === undefined) return driver === "union" ? shown : choice;
    return { ...shown, conflict: "outdated" };
  }

  async #mergeFiles(files: ThreeFiles<Content>, three: Three<Content>, driver: Driver): Promise<Merging<Content>> {
    const { base, ours, theirs } = files;
    const content = await this.#mergeContents(files, three, driver);
    if (content.conflict !== undefined && content.settled === undefined) return content;
    let mode = theirs.mode;
    let isModeConflict = false;
    if (ours.mode !== theirs.mode && ours.mode !== base?.mode) {
      isModeConflict = theirs.mode !== base?.mode;
      if (!isModeConflict || this.#options.favour === "ours") mode = ours.mode;
    }
    if (content.result?.kind !== "file") return content;
    const result = { ...content.result, mode };
    if (!isModeConflict) return { ...content, result };
    const { favour } = this.#options;
    const settled = favour === "union" ? undefined : favour;
    return { result, conflict: content.conflict ?? "mode", hunks: content.hunks ?? [], settled };
  }

  async #mergeContents(
    { base, ours, theirs }: ThreeFiles<Content>,
    three: Three<Content>,
    driver: Driver,
  ): Promise<Merging<Content>> {
    if (await this.#isSameContent(ours.content, theirs.content)) return { result: theirs };
    if (base !== undefined) {
      if (await this.#isSameContent(base.content, ours.content)) return { result: theirs };
      if (await this.#isSameContent(base.content, theirs.content)) return { result: ours };
    }
    if (driver === "whole") return this.#choice(three, "whole");
    const all = [ours, theirs, ...(base === undefined ? [] : [base])];
    if (all.some(({ content }) => this.#size(content) > LARGEST_TEXT)) return this.#choice(three, "large");
    const [mine, yours, start = ""] = await Promise.all(all.map(async ({ content }) => await this.#read(content)));
    if ([mine, yours, start].some((text) => text!.includes("\0"))) return this.#choice(three, "binary");
    const texts = [start, mine!, yours!] as const;
    if (texts.some(hasTooManyLines)) return this.#choice(three, "large");
    const favour = driver === "union" ? "union" : this.#options.favour;
    const labels = { ours: three.names[0], theirs: three.names[1] };
    const { text, hunks } = mergeText(...texts, { favour, labels });
    if (driver === "json" && isJson(mine!) && isJson(yours!) && !isJson(text))
      return this.#choice(three, "whole", hunks);
    if (!this.#hasRoomFor(text)) return this.#choice(three, "large");
    const result = { ...ours, content: text };
    if (hunks.length === 0 || driver === "union") return { result };
    const settled = favour ?? (this.#options.markers && driver === "text" ? "markers" : undefined);
    return { result, conflict: base === undefined ? "added" : "text", hunks, settled };
  }

  /** A conflict that can only be settled by taking one of the two. */
  #choice({ ours, theirs }: Three<Content>, conflict: ConflictKind, hunks: readonly Hunk[] = []): Merging<Content> {
    const { favour } = this.#options;
    const settled = favour === "union" ? undefined : favour;
    return { result: settled === "theirs" ? theirs : ours, conflict, hunks, settled };
  }

  #hasRoomFor(text: string): boolean {
    this.#mergedBytes += text.length;
    return this.#mergedBytes <= MERGED_BYTES_LIMIT;
  }

  finish(): MergePlan<Content> {
    const nodes = [...this.#nodes.values()];
    for (const node of nodes) {
      if (node.isOpen || node.leaf === undefined || !this.#isDirectory(node)) continue;
      node.isOpen = true;
      const entry = { kind: "directory", mode: node.directory ?? DIRECTORY_MODE } as const;
      const [ours, theirs] = node.old?.kind === "directory" ? [entry, node.leaf] : [node.leaf, entry];
      const { path } = node;
      this.#contested.add(path);
      const names = [this.#input.target.name, this.#ourName(node)] as const;
      this.#conflicts.push({
        path,
        kind: "directory",
        sides: names,
        base: node.old,
        ours,
        theirs,
        hunks: [],
        settled: undefined,
      });
    }
    const all = nodes.flatMap((node) => this.#stepsAt(node)).sort(byTurn);
    // A directory that nobody changed is made only for what is written into it.
    const needed = new Set(all.flatMap(({ kind, path }) => (kind === "remove" ? [] : directoriesAbove(path))));
    const steps = all.filter(({ kind, path, sides }) => kind !== "directory" || sides.length > 0 || needed.has(path));
    return { steps, conflicts: this.#conflicts.sort((a, b) => compare(a.path, b.path)) };
  }

  #stepsAt(node: Node<Content>): Step<Content>[] {
    const { path, old, sides, leaf } = node;
    if (node.isOpen || this.#isBelowContested(path)) return [];
    const at = { path, old, sides };
    const removal: Step<Content>[] = old === undefined ? [] : [{ ...at, kind: "remove" }];
    if (this.#isDirectory(node)) {
      if (old?.kind === "directory" && (node.directory ?? old.mode) === old.mode) return [];
      const making: Step<Content> = { ...at, kind: "directory", mode: node.directory ?? DIRECTORY_MODE };
      return old?.kind === "directory" ? [making] : [...removal, making];
    }
    if (leaf === undefined) return removal;
    if (leaf.kind === "other" || leaf.kind === "directory" || isAsBefore(leaf, old)) return [];
    const before = old?.kind === "directory" ? removal : [];
    if (leaf.kind === "symlink") return [...before, { ...at, kind: "link", target: leaf.target }];
    return [...before, { ...at, kind: "file", mode: leaf.mode, content: leaf.content }];
  }

  /** A directory is there in the end, because it was left or made, or because something is in it. */
  #isDirectory(node: Node<Content>): boolean {
    if (node.directory !== undefined) return true;
    if ([...node.children].some((path) => this.#survives(path))) return true;
    if (node.old?.kind !== "directory") return false;
    return this.#input.target.names(node.path).some((name) => this.#survives(`${node.path}/${name}`));
  }

  /** Whether a directory is there, or was, is not settled. */
  #isBelowContested(path: string): boolean {
    for (let end = path.lastIndexOf("/"); end > 0 && this.#contested.size > 0; end = path.lastIndexOf("/", end - 1)) {
      if (this.#contested.has(path.slice(0, end))) return true;
    }
    return false;
  }

  #survives(path: string): boolean {
    const known = this.#surviving.get(path);
    if (known !== undefined) return known;
    const node = this.#nodes.get(path);
    const survives = node === undefined || node.isOpen || node.leaf !== undefined || this.#isDirectory(node);
    this.#surviving.set(path, survives);
    return survives;
  }

  #ourName({ sides }: Node<Content>): string {
    return sides.length === 0
      ? this.#input.target.name
      : sides.map((side) => this.#input.sides[side]!.name).join(" + ");
  }

  async #isSame(a: MergedEntry<Content> | undefined, b: MergedEntry<Content> | undefined): Promise<boolean> {
    if (a === b || a === undefined || b === undefined || a.kind !== b.kind) return a === b;
    if (a.kind === "symlink" && b.kind === "symlink") return a.target === b.target;
    if (a.kind !== "file" || b.kind !== "file" || a.mode !== b.mode) return false;
    return await this.#isSameContent(a.content, b.content);
  }

  async #isSameContent(a: Content | string, b: Content | string): Promise<boolean> {
    if (a === b) return true;
    if (this.#size(a) !== this.#size(b)) return false;
    if (typeof a === "string" || typeof b === "string") return (await this.#read(a)) === (await this.#read(b));
    return await this.#input.contents.same(a, b);
  }

  #size(content: Content | string): number {
    return typeof content === "string" ? content.length : this.#input.contents.size(content);
  }

  async #read(content: Content | string): Promise<string> {
    return typeof content === "string" ? content : await this.#input.contents.read(content);
  }
}

interface Three<Content> {
  readonly base: Entry<Content> | undefined | "unknown";
  readonly ours: MergedEntry<Content> | undefined;
  readonly theirs: MergedEntry<Content> | undefined;
  readonly names: readonly [ours: string, theirs: string];
}

type FileOf<Content> = Extract<MergedEntry<Content>, { readonly kind: "file" }>;

interface ThreeFiles<Content> {
  readonly base: FileOf<Content> | undefined;
  readonly ours: FileOf<Content>;
  readonly theirs: FileOf<Content>;
}

interface Merging<Content> {
  readonly result: MergedEntry<Content> | undefined;
  readonly conflict?: ConflictKind;
  readonly hunks?: readonly Hunk[];
  readonly settled?: Conflict<Content>["settled"];
}

function leafOf<Content>(entry: Entry<Content> | undefined): Entry<Content> | undefined {
  return entry?.kind === "directory" ? undefined : entry;
}

function directoryOf<Content>(entry: Entry<Content> | undefined): number | undefined {
  return entry?.kind === "directory" ? entry.mode : undefined;
}

export function directoriesAbove(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join("/"));
}

function isAsBefore<Content>(leaf: MergedEntry<Content>, old: Entry<Content> | undefined): boolean {
  if (leaf === old || leaf.kind !== "file" || old?.kind !== "file") return leaf === old;
  return leaf.content === old.content && leaf.mode === old.mode;
}

function hasTooManyLines(text: string): boolean {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0 && lines <= MOST_LINES; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines > MOST_LINES;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(Buffer.from(text, "latin1").toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

const TURNS = { remove: 0, directory: 1, file: 2, link: 2 } as const;

function byTurn<Content>(a: Step<Content>, b: Step<Content>): number {
  const order = TURNS[a.kind] - TURNS[b.kind];
  return order !== 0 ? order : a.kind === "remove" ? compare(b.path, a.path) : compare(a.path, b.path);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
