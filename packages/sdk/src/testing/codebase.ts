import { createHash, randomBytes } from "node:crypto";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { CodebaseSchema } from "@agentfense/protocol/codebase";
import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { Fault } from "./faults.ts";
import { ancestorsOf, PathTree } from "./path-tree.ts";

type Files = PathTree<Entry>;

/** Files, with those of every earlier version. */
export class MockCodebase {
  /** As clients are told of it. */
  readonly message;
  readonly #trees: Files[] = [new PathTree()];

  constructor(facts: { readonly name: string; readonly ownerId: string }) {
    const id = `cb_${randomBytes(16).toString("hex")}`;
    this.message = create(CodebaseSchema, { ...facts, id, createdAt: timestampNow(), updatedAt: timestampNow() });
  }

  /** The newest; never changed in place. */
  get tree(): Files {
    return this.#trees.at(-1)!;
  }

  /** 0 when nothing was ever uploaded. */
  get version(): number {
    return this.#trees.length - 1;
  }

  at(version: number): Files {
    const found = this.#trees[version];
    if (found !== undefined) return found;
    throw new Fault("VERSION_NOT_FOUND", `version ${version} not found: the newest is ${this.version}`);
  }

  /** All or nothing. Gives the new version, or 0 when nothing had to change. */
  change(work: (tree: Files) => void): number {
    const tree = this.tree.copy();
    work(tree);
    const all = new Set([...this.tree, ...tree].map(([path]) => path));
    if ([...all].every((path) => isEqual(this.tree.get(path), tree.get(path)))) return 0;
    this.#trees.push(tree);
    const files = [...tree].filter(([, { kind }]) => kind !== "directory").map(([, entry]) => entry);
    this.message.size = BigInt(
      files.reduce((sum, { kind, content }) => sum + (kind === "file" ? content.length : 0), 0),
    );
    this.message.fileCount = files.length;
    this.message.version = BigInt(this.version);
    this.message.updatedAt = timestampNow();
    return this.version;
  }
}

/** Puts an entry in a tree that is being changed, with the directories on the way. What is in the way of it goes. */
export function putEntry(tree: Files, path: string, entry: Entry): void {
  for (const above of ancestorsOf(path)) {
    if (tree.get(above)?.kind !== "directory") tree.set(above, entryOf("directory"));
  }
  if (entry.kind !== "directory") tree.remove(path);
  tree.set(path, entry);
}

/** What stands at a path. Never changed in place: a change puts another one there, so that versions may share them. */
export interface Entry {
  readonly kind: "file" | "directory" | "symlink";
  /** What a file holds, or where a link leads; a directory has none. */
  readonly content: Uint8Array;
  readonly mode: number;
  readonly modifiedAtMs: number;
}

const MODES = { file: 0o644, directory: 0o755, symlink: 0o777 } as const;

export function entryOf(
  kind: Entry["kind"],
  content: string | Uint8Array = "",
  { mode = MODES[kind], modifiedAtMs = Date.now() }: { readonly mode?: number; readonly modifiedAtMs?: number } = {},
): Entry {
  return { kind, content: typeof content === "string" ? Buffer.from(content) : content, mode, modifiedAtMs };
}

/** As text; "" for no entry at all. */
export function textOf(entry: Entry | undefined): string {
  return entry === undefined ? "" : Buffer.from(entry.content).toString("utf8");
}

/** "" for what is no link. */
export function targetOf(entry: Entry): string {
  return entry.kind === "symlink" ? textOf(entry) : "";
}

/** In everything but the time. */
export function isEqual(one: Entry | undefined, other: Entry | undefined): boolean {
  if (one === other) return true;
  if (one === undefined || other === undefined) return false;
  return one.kind === other.kind && one.mode === other.mode && Buffer.compare(one.content, other.content) === 0;
}

/** SHA-256 in hexadecimal of a file's content; "" for what is none. */
export function sha256Of({ kind, content }: Entry): string {
  return kind === "file" ? createHash("sha256").update(content).digest("hex") : "";
}

/** The entries of a directory of this machine, by path. Links stay links; sockets, fifos and devices stay out. */
export async function readDirectory(directory: string, signal?: AbortSignal): Promise<[path: string, entry: Entry][]> {
  const found: [string, Entry][] = [];
  for (const name of await readdir(directory, { recursive: true })) {
    signal?.throwIfAborted();
    const place = join(directory, name);
    const stat = await lstat(place);
    const facts = { mode: stat.mode & 0o777, modifiedAtMs: Math.floor(stat.mtimeMs) };
    const path = `/${name.replaceAll("\\", "/")}`;
    if (stat.isSymbolicLink()) found.push([path, entryOf("symlink", await readlink(place))]);
    else if (stat.isFile()) found.push([path, entryOf("file", await readFile(place), facts)]);
    else if (stat.isDirectory()) found.push([path, entryOf("directory", "", facts)]);
  }
  return found;
}
