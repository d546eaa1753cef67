import { Buffer, isUtf8 } from "node:buffer";
import { constants, type Stats } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import ignore, { type Ignore } from "ignore";

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

/** Read in this order: what the second says about a name wins over the first. */
const IGNORE_FILES = [".gitignore", ".agentfenseignore"] as const;
const LARGEST_IGNORE_FILE = 1_048_576;

/** The ignore files on the way from the top to a directory. As with git, the nearest one that has something to say decides. */
class IgnoreRules {
  /** Somebody's own rules, which are asked before all files. */
  readonly #own: readonly Level[];
  /** The nearest first. */
  readonly #files: readonly Level[];
  readonly #inOrder: readonly Level[];

  private constructor(own: readonly Level[], files: readonly Level[]) {
    this.#own = own;
    this.#files = files;
    this.#inOrder = [...own, ...files];
  }

  /** Rules without a file, relative to the top. */
  static of(patterns: readonly string[]): IgnoreRules {
    return new IgnoreRules(patterns.length === 0 ? [] : [{ base: "", rules: compiled(patterns) }], []);
  }

  /** These rules and those of a directory below, whose path is relative to the top ("" is the top itself). */
  async enter(top: string, directory: string): Promise<IgnoreRules> {
    const texts: string[] = [];
    for (const name of IGNORE_FILES) {
      const text = await readIgnoreFile(join(top, directory, name));
      if (text !== undefined) texts.push(text);
    }
    if (texts.length === 0) return this;
    const base = directory === "" ? "" : `${directory}/`;
    return new IgnoreRules(this.#own, [{ base, rules: compiled(texts) }, ...this.#files]);
  }

  /** Whoever is ignored as a directory is not entered, so that nothing below it can come back. */
  ignores(path: string, kind: "directory" | "other"): boolean {
    for (const { base, rules } of this.#inOrder) {
      const relative = path.slice(base.length) + (kind === "directory" ? "/" : "");
      const { ignored, unignored } = rules.test(relative);
      if (ignored || unignored) return ignored;
    }
    return false;
  }
}

interface Level {
  /** The directory's path with a slash at the end, "" for the top. */
  readonly base: string;
  readonly rules: Ignore;
}

function compiled(texts: readonly string[]): Ignore {
  // git on Linux tells apart what differs in case only.
  return ignore({ ignorecase: false }).add(texts.join("\n"));
}

/** Not through a link: as git, which wants to find them where they are. Absent, unreadable or absurd ones say nothing. */
async function readIgnoreFile(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const status = await file.stat();
    if (!status.isFile() || status.size > LARGEST_IGNORE_FILE) return undefined;
    return await file.readFile("utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP" || code === "ENXIO" || code === "EACCES") return undefined;
    throw error;
  }
}
