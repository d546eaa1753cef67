import { randomBytes } from "node:crypto";
import { CodebaseSchema } from "@agentfense/protocol/codebase";
import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type Entry, entryOf, isEqual } from "./entry.ts";
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
