import { randomBytes } from "node:crypto";
import { Fault } from "../faults.ts";
import { type Entry, sizeOf } from "../files/entry.ts";
import { PathTree } from "../files/path-tree.ts";
import { Draft, type PathChange } from "./draft.ts";

export type VersionOrigin = "upload" | "sync" | "rollback" | "delete" | "rename";

/** A sandbox wrote what somebody else had changed since it last saw it. */
export interface Conflict {
  readonly path: string;
  readonly replacedVersion: number;
  readonly replacedSandboxId: string;
}

export interface VersionRecord {
  readonly version: number;
  readonly origin: VersionOrigin;
  /** Whose sync it was, else "". */
  readonly sandboxId: string;
  readonly message: string;
  readonly createdAtMs: number;
  readonly filesChanged: number;
  /** Of the whole codebase. */
  readonly size: number;
  readonly fileCount: number;
  readonly changes: readonly PathChange[];
  readonly conflicts: readonly Conflict[];
}

interface VersionFacts {
  readonly origin: VersionOrigin;
  readonly sandboxId?: string;
  readonly message?: string;
  readonly conflicts?: readonly Conflict[];
}

/** Files with their history: the newest tree, and what each version changed. */
export class Codebase {
  readonly id = `cb_${randomBytes(16).toString("hex")}`;
  readonly name: string;
  readonly ownerId: string;
  readonly createdAtMs = Date.now();
  /** Never changed but by `change`. */
  readonly tree = new PathTree<Entry>();
  readonly versions: VersionRecord[] = [];
  readonly #onChange: (codebase: Codebase, version: VersionRecord) => void;

  constructor(
    facts: { readonly name: string; readonly ownerId: string },
    onChange: (codebase: Codebase, version: VersionRecord) => void,
  ) {
    this.name = facts.name;
    this.ownerId = facts.ownerId;
    this.#onChange = onChange;
  }

  /** 0 when nothing was ever uploaded. */
  get version(): number {
    return this.versions.length;
  }

  get updatedAtMs(): number {
    return this.versions.at(-1)?.createdAtMs ?? this.createdAtMs;
  }

  get size(): number {
    return this.versions.at(-1)?.size ?? 0;
  }

  get fileCount(): number {
    return this.versions.at(-1)?.fileCount ?? 0;
  }

  /** One version, all or nothing; undefined when nothing had to change. */
  change(facts: VersionFacts, work: (draft: Draft) => void): VersionRecord | undefined {
    const draft = new Draft(this.tree);
    try {
      work(draft);
    } catch (error) {
      draft.takeBack();
      throw error;
    }
    const changes = draft.changes();
    if (changes.length === 0) return undefined;
    const made: VersionRecord = {
      version: this.version + 1,
      origin: facts.origin,
      sandboxId: facts.sandboxId ?? "",
      message: facts.message ?? "",
      createdAtMs: Date.now(),
      // A rename is told once, by where things are now.
      filesChanged: changes.filter(
        ({ before, after }) => isCounted(after) || (facts.origin !== "rename" && isCounted(before)),
      ).length,
      size: changes.reduce((sum, { before, after }) => sum + bytesOf(after) - bytesOf(before), this.size),
      fileCount: changes.reduce(
        (sum, { before, after }) => sum + Number(isCounted(after)) - Number(isCounted(before)),
        this.fileCount,
      ),
      changes,
      conflicts: facts.conflicts ?? [],
    };
    this.versions.push(made);
    this.#onChange(this, made);
    return made;
  }

  /** 0: the newest. */
  resolve(version: number): number {
    if (version === 0) return this.version;
    if (version <= this.version) return version;
    throw new Fault("VERSION_NOT_FOUND", `version ${version} not found: the newest is ${this.version}`, {
      details: { version: String(this.version) },
    });
  }

  /** The newest tree, less what came after. */
  treeAt(version: number): PathTree<Entry> {
    const resolved = this.resolve(version);
    if (resolved === this.version) return this.tree;
    const tree = this.tree.copy();
    for (const { changes } of this.versions.slice(resolved).reverse()) {
      for (const { path, before } of changes) {
        if (before === undefined) tree.delete(path);
        else tree.set(path, before);
      }
    }
    return tree;
  }

  /** The newest version after this one in which somebody but that sandbox changed the path. */
  foreignWork(path: string, afterVersion: number, sandboxId: string): VersionRecord | undefined {
    const later = this.versions.slice(afterVersion);
    const last = later.filter(({ changes }) => changes.some((change) => change.path === path)).at(-1);
    return last?.sandboxId === sandboxId ? undefined : last;
  }
}

/** Files and links are counted, directories are not. */
function isCounted(entry: Entry | undefined): boolean {
  return entry !== undefined && entry.kind !== "directory";
}

function bytesOf(entry: Entry | undefined): number {
  return entry?.kind === "file" ? sizeOf(entry) : 0;
}
