import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import ignore, { type Ignore } from "ignore";

/** Read in this order: what the second says about a name wins over the first. */
const IGNORE_FILES = [".gitignore", ".agentfenseignore"] as const;
const LARGEST_IGNORE_FILE = 1_048_576;

/** The ignore files on the way from the top to a directory. As with git, the nearest one that has something to say decides. */
export class IgnoreRules {
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
