import { Buffer, isUtf8 } from "node:buffer";
import type { Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { IgnoreRules } from "./ignore-rules.ts";

/** One thing of a local directory, as it will be in the codebase. */
export type LocalEntry =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly size: number }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string };

export interface Walk {
  /** A directory before what is in it. */
  readonly entries: readonly LocalEntry[];
  /** Directories and links that could not be read. */
  readonly unreadable: readonly string[];
  /** What no codebase can hold, each with the reason. */
  readonly unsuitable: readonly string[];
}

export interface WalkOptions {
  readonly ignoreFiles: boolean;
  /** Patterns that have the last word over those of files. */
  readonly ignore?: readonly string[];
  readonly includeGit: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Everything below a directory that is to be uploaded. Links are never followed. */
export async function walk(top: string, options: WalkOptions): Promise<Walk> {
  const walking = new Walking(top, options);
  await walking.enter("", IgnoreRules.of(options.ignore ?? []));
  return walking;
}

class Walking implements Walk {
  readonly entries: LocalEntry[] = [];
  readonly unreadable: string[] = [];
  readonly unsuitable: string[] = [];
  readonly #top: string;
  readonly #options: WalkOptions;

  constructor(top: string, options: WalkOptions) {
    this.#top = top;
    this.#options = options;
  }

  async enter(directory: string, outer: IgnoreRules): Promise<void> {
    this.#options.signal?.throwIfAborted();
    const names = await this.#readable(directory, () => readdir(join(this.#top, directory), { encoding: "buffer" }));
    if (names === undefined) return;
    const rules = this.#options.ignoreFiles ? await outer.enter(this.#top, directory) : outer;
    const below = directory === "" ? "" : `${directory}/`;
    const found = await Promise.all(names.sort(Buffer.compare).map((name) => this.#look(below, name)));
    for (const { path, status } of found.filter((each) => each !== undefined)) {
      if (rules.ignores(path, status.isDirectory() ? "directory" : "other")) continue;
      await this.#take(path, status, rules);
    }
  }

  /** Gone in the meantime is as good as never there. */
  async #look(below: string, name: Buffer): Promise<{ readonly path: string; readonly status: Stats } | undefined> {
    const path = below + name.toString("utf8");
    if (!this.#options.includeGit && path.slice(below.length) === ".git") return undefined;
    if (!isUtf8(name)) {
      this.unsuitable.push(`${path}: its name is not UTF-8`);
      return undefined;
    }
    const status = await this.#readable(path, () => lstat(join(this.#top, path)));
    return status === undefined ? undefined : { path, status };
  }

  async #take(path: string, status: Stats, rules: IgnoreRules): Promise<void> {
    const mode = status.mode & 0o777;
    if (status.isDirectory()) {
      this.entries.push({ kind: "directory", path, mode });
      await this.enter(path, rules);
    } else if (status.isFile()) {
      this.entries.push({ kind: "file", path, mode, size: status.size });
    } else if (status.isSymbolicLink()) {
      const target = await this.#readable(path, () => readlink(join(this.#top, path), { encoding: "buffer" }));
      if (target === undefined) return;
      if (isUtf8(target)) this.entries.push({ kind: "symlink", path, target: target.toString("utf8") });
      else this.unsuitable.push(`${path}: its target is not UTF-8`);
    } else this.unsuitable.push(`${path}: is neither a file, a directory nor a link`);
  }

  async #readable<T>(path: string, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return undefined;
      if (code !== "EACCES" && code !== "EPERM") throw error;
      this.unreadable.push(path === "" ? "." : path);
      return undefined;
    }
  }
}
