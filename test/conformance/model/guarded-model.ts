import { basename, dirname } from "node:path";
import type { Level } from "@agentfense/permission";

export type ModelEntry =
  | { readonly type: "file"; content: string; readonly mode?: number }
  | { readonly type: "directory" }
  | { readonly type: "symlink"; readonly target: string }
  /** Only to be seen or not: no call on one is predicted. */
  | { readonly type: "fifo" };

/** The call succeeds and changes the model; or it fails with one of these. */
export type Prediction = { readonly ok: () => void } | { readonly errno: readonly string[] };

/** What a walk of the mount must find: paths with type, and content where it may be read. */
export type Visible = Record<string, string>;

/**
 * What the mount shows and allows, decided entry by entry from the level of each path. Paths are absolute in the
 * workspace ("/a/b"). Hidden entries are in the model too; whatever happens, they must not have an effect.
 */
export class GuardedModel {
  readonly entries: Map<string, ModelEntry>;
  readonly #level: (path: string) => Level;
  /** Directories of the codebase layer: renaming one is EXDEV. */
  readonly #fromCodebase: Set<string>;

  constructor(entries: Map<string, ModelEntry>, level: (path: string) => Level) {
    this.entries = new Map([...entries].map(([path, entry]) => [path, { ...entry }]));
    this.#level = level;
    this.#fromCodebase = new Set([...entries].filter(([, entry]) => entry.type === "directory").map(([path]) => path));
  }

  level(path: string): Level {
    return this.#level(path);
  }

  /** The entry at a path, if it is there and can be seen. */
  seen(path: string): ModelEntry | undefined {
    if (path === "/") return { type: "directory" };
    const entry = this.entries.get(path);
    if (entry === undefined) return undefined;
    if (this.level(path) !== "none") return entry;
    return entry.type === "directory" && this.childrenSeen(path).length > 0 ? entry : undefined;
  }

  childrenSeen(path: string): string[] {
    const start = path === "/" ? "/" : `${path}/`;
    return [...this.entries.keys()]
      .filter((other) => other.startsWith(start) && !other.slice(start.length).includes("/"))
      .filter((other) => this.seen(other) !== undefined)
      .map((other) => basename(other))
      .sort();
  }

  /** Everything a recursive walk must find, and nothing else. */
  visible(): Visible {
    const found: Visible = {};
    const visit = (path: string) => {
      for (const name of this.childrenSeen(path)) {
        const child = path === "/" ? `/${name}` : `${path}/${name}`;
        const entry = this.seen(child);
        found[child] = entry === undefined ? "" : this.#shown(child, entry);
        if (entry?.type === "directory") visit(child);
      }
    };
    visit("/");
    return found;
  }

  #shown(path: string, entry: ModelEntry): string {
    if (entry.type === "directory" || entry.type === "fifo") return entry.type;
    if (entry.type === "symlink") return `symlink to ${entry.target}`;
    return atLeast(this.level(path), "read") ? `file: ${entry.content}` : "file: EACCES";
  }

  /** The errno with which a walk to the parent of this path ends, if it does. */
  #blocked(path: string): string | undefined {
    const parent = dirname(path);
    if (parent === "/") return undefined;
    const above = this.#blocked(parent);
    if (above !== undefined) return above;
    const entry = this.seen(parent);
    if (entry === undefined) return "ENOENT";
    // A symbolic link of these trees leads nowhere.
    if (entry.type === "symlink") return "ENOENT";
    return entry.type === "file" ? "ENOTDIR" : undefined;
  }

  /** For calls about an entry that must exist: fails as it should, or goes on with the entry. */
  #existing(path: string, use: (entry: ModelEntry) => Prediction): Prediction {
    const blocked = this.#blocked(path);
    if (blocked !== undefined) return fails(blocked);
    const entry = this.seen(path);
    return entry === undefined ? fails("ENOENT") : use(entry);
  }

  /** For calls that follow a final symbolic link. */
  #followed(path: string, use: (entry: ModelEntry) => Prediction): Prediction {
    return this.#existing(path, (entry) => (entry.type === "symlink" ? fails("ENOENT") : use(entry)));
  }

  lstat(path: string): Prediction {
    return this.#existing(path, () => succeeds());
  }

  list(path: string): Prediction {
    return this.#followed(path, (entry) => (entry.type === "directory" ? succeeds() : fails("ENOTDIR")));
  }

  read(path: string): Prediction {
    return this.#followed(path, (entry) => {
      if (entry.type === "directory") return fails("EISDIR");
      return atLeast(this.level(path), "read") ? succeeds() : fails("EACCES");
    });
  }

  append(path: string, text: string): Prediction {
    return this.#followed(path, (entry) => {
      if (entry.type !== "file") return fails("EISDIR");
      return this.#ifWrite([path], () => {
        entry.content += text;
      });
    });
  }

  truncate(path: string): Prediction {
    return this.#followed(path, (entry) => {
      if (entry.type !== "file") return fails("EISDIR");
      return this.#ifWrite([path], () => {
        entry.content = "";
      });
    });
  }

  /** chmod, utimens, setxattr: changes of what the model does not hold. */
  touch(path: string): Prediction {
    return this.#followed(path, () => this.#ifWrite([path], () => undefined));
  }

  access(path: string, wanted: "read" | "write"): Prediction {
    return this.#followed(path, (entry) => {
      if (entry.type !== "file") return anything();
      return atLeast(this.level(path), wanted) ? succeeds() : fails("EACCES");
    });
  }

  readlink(path: string): Prediction {
    return this.#existing(path, (entry) => (entry.type === "symlink" ? succeeds() : fails("EINVAL")));
  }

  create(path: string, entry: ModelEntry): Prediction {
    const blocked = this.#blocked(path);
    if (blocked !== undefined) return fails(blocked);
    if (this.seen(path) !== undefined) return fails("EEXIST");
    return this.#ifWrite([path], () => this.#put(path, entry));
  }

  unlink(path: string): Prediction {
    return this.#existing(path, (entry) => {
      if (entry.type === "directory") return fails("EISDIR");
      return this.#ifWrite([path], () => this.#drop(path));
    });
  }

  rmdir(path: string): Prediction {
    return this.#existing(path, (entry) => {
      if (entry.type !== "directory") return fails("ENOTDIR");
      if (this.level(path) !== "write") return fails("EACCES");
      return this.childrenSeen(path).length > 0 ? fails("ENOTEMPTY") : succeeds(() => this.#drop(path));
    });
  }

  link(source: string, target: string): Prediction {
    return this.#existing(source, (entry) => {
      const blocked = this.#blocked(target);
      if (blocked !== undefined) return fails(blocked);
      if (this.seen(target) !== undefined) return fails("EEXIST");
      if (entry.type === "directory") return fails("EPERM");
      return this.#ifWrite([source, target], () => this.#put(target, entry));
    });
  }

  rename(source: string, target: string): Prediction {
    const blocked = this.#blocked(source) ?? this.#blocked(target);
    if (blocked !== undefined) return fails(blocked);
    const entry = this.seen(source);
    if (entry === undefined) return fails("ENOENT");
    if (target.startsWith(`${source}/`)) return fails("EINVAL");
    if (source.startsWith(`${target}/`)) return fails("ENOTEMPTY");
    const replaced = this.seen(target);
    // Two names of one file, a name and itself included: nothing happens, whatever the rules.
    if (replaced === entry) return succeeds();
    if (replaced !== undefined && entry.type === "directory" && replaced.type !== "directory") return fails("ENOTDIR");
    if (replaced !== undefined && entry.type !== "directory" && replaced.type === "directory") return fails("EISDIR");
    const allowed = this.level(source) === "write" && this.level(target) === "write";
    if (entry.type === "directory" && this.#fromCodebase.has(source))
      return fails("EXDEV", ...(allowed ? [] : ["EACCES"]));
    if (!allowed) return fails("EACCES");
    if (replaced?.type === "directory" && this.childrenSeen(target).length > 0) return fails("ENOTEMPTY");
    return succeeds(() => this.#move(source, target));
  }

  /** Whether moving this directory would put an entry under other rules than it is under now. */
  carriesOtherLevels(source: string, target: string): boolean {
    return [...this.entries.keys()]
      .filter((path) => path.startsWith(`${source}/`))
      .some((path) => this.level(path) !== "write" || this.level(target + path.slice(source.length)) !== "write");
  }

  #ifWrite(paths: readonly string[], change: () => void): Prediction {
    return paths.every((path) => this.level(path) === "write") ? succeeds(change) : fails("EACCES");
  }

  /** What was hidden below a directory that is removed or replaced does not come back. */
  #drop(path: string): void {
    for (const other of [...this.entries.keys()]) {
      if (other === path || other.startsWith(`${path}/`)) this.entries.delete(other);
    }
    this.#fromCodebase.delete(path);
  }

  #put(path: string, entry: ModelEntry): void {
    this.#drop(path);
    this.entries.set(path, entry);
  }

  #move(source: string, target: string): void {
    const moved = [...this.entries].filter(([path]) => path === source || path.startsWith(`${source}/`));
    this.#drop(target);
    this.#drop(source);
    for (const [path, entry] of moved) this.entries.set(target + path.slice(source.length), entry);
  }
}

const ORDER: readonly Level[] = ["none", "view", "read", "write"];

function atLeast(level: Level, wanted: Level): boolean {
  return ORDER.indexOf(level) >= ORDER.indexOf(wanted);
}

function succeeds(change: () => void = () => undefined): Prediction {
  return { ok: change };
}

function fails(...errno: string[]): Prediction {
  return { errno };
}

/** No promise is made about this case; the walk afterwards still has to agree. */
function anything(): Prediction {
  return { errno: ["ok", "EACCES"] };
}
