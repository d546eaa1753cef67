import { LEVEL, type Level, levelName, namesIn, type Policy, type Scope } from "@agentfense/permission";
import { type Entry, entryOf, targetOf } from "./codebase.ts";
import { FileFault } from "./faults.ts";
import type { Overlay } from "./overlay.ts";
import { ancestorsOf, byPath, isAtOrBelow, joined, parentOf } from "./path-tree.ts";

/** An entry as a process inside sees it. */
export interface ViewEntry {
  readonly path: string;
  readonly kind: Entry["kind"];
  readonly size: number;
  readonly mode: number;
  readonly target: string;
  readonly modifiedAtMs: number;
  readonly permission: Exclude<Level, "none">;
}

interface ViewParts {
  readonly overlay: Overlay;
  /** Those in force now. */
  readonly policy: () => Policy;
  /** The rules refused something; the path is one of the workspace. */
  readonly onDenied: (path: string, operation: string, scope: Scope) => void;
}

interface WriteOptions {
  readonly mode?: number;
  readonly append?: boolean;
}

interface Place {
  readonly path: string;
  /** Undefined: nothing that shows. */
  readonly entry: Entry | undefined;
}

/** As many as the kernel follows. */
const MOST_LINKS = 40;

/**
 * The files of a sandbox under its rules, with the answers that a process inside gets: what is hidden does not exist, a
 * directory on the way to something visible shows that and nothing else, and the path alone decides what may be made
 * there. Paths are in their normal form. A refusal is a FileFault.
 */
export class GuardedView {
  readonly #parts: ViewParts;

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  stat(path: string, options: { readonly follow?: boolean } = {}): ViewEntry {
    return this.#describe(this.#present(path, options.follow ?? false));
  }

  /** In the order of their paths; links are not followed below the path itself. */
  list(path: string, options: { readonly recursive?: boolean } = {}): ViewEntry[] {
    const directory = this.#present(path, true);
    if (directory.entry.kind !== "directory") throw new FileFault("ENOTDIR");
    // Named by the path that was asked for, also when that is a link.
    const named = (found: string) => (path === directory.path ? found : path + found.slice(directory.path.length));
    const listed = (from: string): ViewEntry[] =>
      this.#visibleNames(from).flatMap((name) => {
        const at = joined(from, name);
        const entry = this.#describe({ path: at, entry: this.#parts.overlay.get(at)! });
        const below = options.recursive === true && entry.kind === "directory" ? listed(at) : [];
        return [{ ...entry, path: named(at) }, ...below];
      });
    return listed(directory.path).sort(byPath);
  }

  read(path: string): Uint8Array {
    const { path: at, entry } = this.#present(path, true);
    const { content } = regular(entry);
    this.#require(at, LEVEL.read, "open");
    return content;
  }

  write(path: string, content: Uint8Array, { mode, append = false }: WriteOptions = {}): ViewEntry {
    const { path: at, entry } = this.#resolve(path, true);
    const before = entry && regular(entry);
    this.#require(at, LEVEL.write, before === undefined ? "create" : "open");
    const all = append && before !== undefined ? Buffer.concat([before.content, content]) : content;
    const ownMode = mode ?? before?.mode;
    this.#parts.overlay.put(at, entryOf("file", all, ownMode === undefined ? {} : { mode: ownMode }));
    return this.stat(path);
  }

  makeDirectory(path: string, options: { readonly recursive?: boolean } = {}): ViewEntry {
    const recursive = options.recursive === true;
    for (const each of recursive ? [...ancestorsOf(path), path] : [path]) {
      const { path: at, entry } = this.#resolve(each, recursive);
      if (entry !== undefined && !(recursive && entry.kind === "directory")) throw new FileFault("EEXIST");
      if (entry !== undefined) continue;
      this.#require(at, LEVEL.write, "mkdir");
      this.#parts.overlay.put(at, entryOf("directory"));
    }
    return this.stat(path);
  }

  remove(path: string, options: { readonly recursive?: boolean } = {}): void {
    const { path: at, entry } = this.#present(path, false);
    const isDirectory = entry.kind === "directory";
    this.#require(at, LEVEL.write, isDirectory ? "rmdir" : "unlink");
    const names = isDirectory ? this.#visibleNames(at) : [];
    if (names.length > 0 && options.recursive !== true) throw new FileFault("ENOTEMPTY");
    for (const name of names) this.remove(joined(at, name), options);
    this.#parts.overlay.remove(at);
  }

  /** Onto a file too; what is in a directory that moves may be written where it is and where it goes. */
  move(from: string, to: string): ViewEntry {
    const source = this.#present(from, false);
    const target = this.#resolve(to, false);
    for (const { path } of [target, source]) this.#require(path, LEVEL.write, "rename");
    const { overlay } = this.#parts;
    const isDirectory = source.entry.kind === "directory";
    // Any other answer would tell whether something hidden is inside.
    if (isDirectory && overlay.isOfCodebase(source.path)) throw new FileFault("EXDEV");
    if (source.path === target.path) return this.stat(to);
    if (isAtOrBelow(target.path, source.path)) throw new FileFault("EINVAL");
    if (target.entry?.kind === "directory") throw new FileFault(isDirectory ? "ENOTEMPTY" : "EISDIR");
    if (target.entry !== undefined && isDirectory) throw new FileFault("ENOTDIR");
    const moved = this.#subtree(source.path).map((old) => ({ old, path: target.path + old.slice(source.path.length) }));
    for (const { path, old } of moved) {
      if (this.#scope(old).level < LEVEL.write) throw new FileFault("EXDEV");
      if (this.#scope(path).level < LEVEL.write) throw new FileFault("EACCES");
    }
    const entries = moved.map(({ path, old }) => ({ path, entry: overlay.get(old)! }));
    overlay.remove(source.path);
    for (const { path, entry } of entries) overlay.put(path, entry);
    return this.stat(to);
  }

  /** Whether a path shows at all; asking is not on record. */
  shows(path: string): boolean {
    return this.#visible(path) !== undefined;
  }

  #subtree(path: string): string[] {
    return [path, ...this.#parts.overlay.names(path).flatMap((name) => this.#subtree(joined(path, name)))];
  }

  #visibleNames(directory: string): string[] {
    return this.#parts.overlay.names(directory).filter((name) => this.shows(joined(directory, name)));
  }

  #visible(path: string): Entry | undefined {
    const entry = this.#parts.overlay.get(path);
    if (entry === undefined || path === "/") return entry;
    const scope = this.#scope(path);
    if (scope.level > LEVEL.none) return entry;
    const isPassage = entry.kind === "directory" && scope.mayShowBelow && this.#visibleNames(path).length > 0;
    return isPassage ? entry : undefined;
  }

  /** Where a path leads. What is on the way must be there, what is at its end need not. */
  #resolve(path: string, followLast: boolean): Place {
    const left = namesIn(path);
    let at = "/";
    for (let links = 0; ; ) {
      const name = left.shift();
      if (name === undefined) return { path: at, entry: this.#parts.overlay.get(at) };
      if (name === "..") {
        if (at === "/") throw new FileFault("EXDEV");
        at = parentOf(at);
        continue;
      }
      const next = joined(at, name);
      const entry = this.#lookUp(next);
      const isLast = left.length === 0;
      if (entry?.kind === "symlink" && (!isLast || followLast)) {
        links += 1;
        if (links > MOST_LINKS) throw new FileFault("ELOOP");
        const { way, fromRoot } = wayOf(targetOf(entry));
        if (fromRoot) at = "/";
        left.unshift(...way);
        continue;
      }
      if (isLast) return { path: next, entry };
      if (entry === undefined) throw new FileFault("ENOENT");
      if (entry.kind !== "directory") throw new FileFault("ENOTDIR");
      at = next;
    }
  }

  #lookUp(path: string): Entry | undefined {
    const entry = this.#visible(path);
    const scope = this.#scope(path);
    const isRefused = entry === undefined && scope.level === LEVEL.none && scope.rule >= 0;
    if (isRefused) this.#parts.onDenied(path, "lookup", scope);
    return entry;
  }

  #present(path: string, followLast: boolean): { readonly path: string; readonly entry: Entry } {
    const { path: at, entry } = this.#resolve(path, followLast);
    if (entry === undefined) throw new FileFault("ENOENT");
    return { path: at, entry };
  }

  #require(path: string, level: number, operation: string): void {
    const scope = this.#scope(path);
    if (scope.level >= level) return;
    this.#parts.onDenied(path, operation, scope);
    throw new FileFault("EACCES");
  }

  #scope(path: string): Scope {
    return this.#parts.policy().decide(path);
  }

  #describe({ path, entry }: { readonly path: string; readonly entry: Entry }): ViewEntry {
    const level = levelName(this.#scope(path).level);
    return {
      path,
      kind: entry.kind,
      size: entry.content.length,
      mode: shownMode(entry, level),
      target: targetOf(entry),
      modifiedAtMs: entry.modifiedAtMs,
      // What is seen without a level of its own is a directory on the way to something visible.
      permission: level === "none" ? "view" : level,
    };
  }
}

function regular(entry: Entry): Entry {
  if (entry.kind === "file") return entry;
  throw new FileFault(entry.kind === "directory" ? "EISDIR" : "EINVAL");
}

/** Mode bits agree with the rules. */
function shownMode(entry: Entry, level: Level): number {
  const { mode } = entry;
  if (entry.kind === "symlink" || level === "write") return mode;
  if (entry.kind === "file" && level === "view") return 0;
  return mode & ~0o222;
}

/** An absolute link leads into the workspace, or out of what there is. */
function wayOf(target: string): { readonly way: readonly string[]; readonly fromRoot: boolean } {
  const [, inner = target] = /^\/workspace(\/.*|$)/.exec(target) ?? [];
  const fromRoot = target.startsWith("/");
  if (fromRoot && inner === target) throw new FileFault("EXDEV");
  return { way: namesIn(inner), fromRoot };
}
