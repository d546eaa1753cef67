import { LEVEL, type Level, levelName, type Policy, type Scope } from "@agentfense/permission";
import { directoryEntry, type Entry, fileEntry, modeOf, sizeOf } from "./entry.ts";
import { FileFault } from "./file-fault.ts";
import type { Overlay } from "./overlay.ts";
import { byPath, isBelow, joined, nameOf, parentOf } from "./paths.ts";

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

export interface ViewParts {
  readonly overlay: Overlay;
  /** Those in force now. */
  readonly policy: () => Policy;
  /** The rules refused something; the path is one of the workspace. */
  readonly onDenied: (path: string, operation: string, scope: Scope) => void;
  /** `rename`: a name came or went; `change`: content did. */
  readonly onChanged: (path: string, kind: "rename" | "change") => void;
  /** Bytes that the sandbox's own files may have; absent: any. */
  readonly quotaBytes?: number | undefined;
  readonly onOverQuota: (path: string, operation: string) => void;
}

interface Place {
  readonly path: string;
  /** Undefined: nothing that shows. */
  readonly entry: Entry | undefined;
}

/** As many as the kernel follows. */
const MOST_LINKS = 40;
/** Names of the delta's bookkeeping, which a sandbox can neither see nor make. */
const RESERVED = ".wh.";

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
    return this.#describe(this.#present(this.#resolve(path, options.follow ?? false)));
  }

  /** In the order of their paths; links are not followed below the path itself. */
  list(path: string, options: { readonly recursive?: boolean } = {}): ViewEntry[] {
    const directory = this.#present(this.#resolve(path, true));
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
    const place = this.#regular(this.#present(this.#resolve(path, true)));
    this.#require(place.path, LEVEL.read, "open");
    return place.entry.content;
  }

  /** Throws as opening it for writing would. What it gives writes the content. */
  openToWrite(
    path: string,
    options: { readonly mode?: number; readonly append?: boolean } = {},
  ): (content: Uint8Array) => ViewEntry {
    const { path: at, entry } = this.#resolve(path, true);
    if (entry !== undefined) this.#regular({ path: at, entry });
    if (entry === undefined) this.#requireNew(at, "create");
    else this.#require(at, LEVEL.write, "open");
    return (content) => {
      const { overlay, onChanged } = this.#parts;
      const before = overlay.get(at);
      const old = options.append === true && before?.kind === "file" ? before.content : new Uint8Array();
      const mode = options.mode ?? (before?.kind === "file" ? before.mode : undefined);
      this.#requireRoom(at, old.length + content.length - (before === undefined ? 0 : sizeOf(before)));
      overlay.put(at, fileEntry(Buffer.concat([old, content]), mode));
      if (before === undefined) onChanged(at, "rename");
      if (before !== undefined || content.length > 0) onChanged(at, "change");
      return this.stat(path);
    };
  }

  write(
    path: string,
    content: Uint8Array,
    options: { readonly mode?: number; readonly append?: boolean } = {},
  ): ViewEntry {
    return this.openToWrite(path, options)(content);
  }

  makeDirectory(path: string, options: { readonly recursive?: boolean } = {}): ViewEntry {
    const recursive = options.recursive === true;
    if (recursive && path !== "/" && this.#missing(parentOf(path))) this.makeDirectory(parentOf(path), options);
    const { path: at, entry } = this.#resolve(path, recursive);
    if (entry !== undefined && !(recursive && entry.kind === "directory")) throw new FileFault("EEXIST");
    if (entry === undefined) {
      this.#requireNew(at, "mkdir");
      this.#parts.overlay.put(at, directoryEntry());
      this.#parts.onChanged(at, "rename");
    }
    return this.stat(path);
  }

  remove(path: string, options: { readonly recursive?: boolean } = {}): void {
    const { path: at, entry } = this.#present(this.#resolve(path, false));
    if (at === "/") throw new FileFault("EBUSY");
    const isDirectory = entry.kind === "directory";
    this.#require(at, LEVEL.write, isDirectory ? "rmdir" : "unlink");
    const names = isDirectory ? this.#visibleNames(at) : [];
    if (names.length > 0 && options.recursive !== true) throw new FileFault("ENOTEMPTY");
    for (const name of names) this.remove(joined(at, name), options);
    this.#parts.overlay.remove(at);
    this.#parts.onChanged(at, "rename");
  }

  /** Onto a file or an empty directory too, as rename(2). */
  move(from: string, to: string): ViewEntry {
    const source = this.#present(this.#resolve(from, false));
    const target = this.#resolve(to, false);
    if (source.path === "/" || target.path === "/") throw new FileFault("EBUSY");
    this.#require(target.path, LEVEL.write, "rename");
    this.#require(source.path, LEVEL.write, "rename");
    if (nameOf(target.path).startsWith(RESERVED)) throw new FileFault("EPERM");
    const { overlay, onChanged } = this.#parts;
    const isDirectory = source.entry.kind === "directory";
    // Any other answer would tell whether something hidden is inside.
    if (isDirectory && overlay.hasLowerDirectory(source.path)) throw new FileFault("EXDEV");
    if (isBelow(target.path, source.path)) throw new FileFault("EINVAL");
    if (source.path === target.path) return this.stat(to);
    if (target.entry !== undefined) this.#requireReplaceable(isDirectory, { ...target, entry: target.entry });
    const moved = this.#subtree(source.path).map((path) => ({
      path: target.path + path.slice(source.path.length),
      entry: overlay.get(path)!,
      old: path,
    }));
    for (const { path, old } of moved) {
      if (this.#scope(old).level < LEVEL.write) throw new FileFault("EXDEV");
      if (this.#scope(path).level < LEVEL.write) throw new FileFault("EACCES");
    }
    overlay.remove(source.path);
    if (target.entry !== undefined) overlay.remove(target.path);
    for (const { path, entry } of moved) overlay.put(path, entry);
    onChanged(source.path, "rename");
    onChanged(target.path, "rename");
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
    return this.#parts.overlay.names(directory).filter((name) => this.#visible(joined(directory, name)) !== undefined);
  }

  #visible(path: string): Entry | undefined {
    const entry = this.#parts.overlay.get(path);
    if (entry === undefined || path === "/") return entry;
    if (nameOf(path).startsWith(RESERVED) && this.#parts.overlay.shadows(path)) return undefined;
    const scope = this.#scope(path);
    if (scope.level > LEVEL.none) return entry;
    const isPassage = entry.kind === "directory" && scope.mayShowBelow && this.#visibleNames(path).length > 0;
    return isPassage ? entry : undefined;
  }

  /** Where a path leads. What is on the way must be there, what is at its end need not. */
  #resolve(path: string, followLast: boolean): Place {
    const left = path.split("/").filter((name) => name !== "");
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
        const { way, fromRoot } = wayOf(entry.target);
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

  #present(place: Place): { readonly path: string; readonly entry: Entry } {
    const { path, entry } = place;
    if (entry === undefined) throw new FileFault("ENOENT");
    return { path, entry };
  }

  #missing(path: string): boolean {
    try {
      return this.#resolve(path, true).entry === undefined;
    } catch (error) {
      if (error instanceof FileFault && error.errno === "ENOENT") return true;
      throw error;
    }
  }

  #regular({ path, entry }: { readonly path: string; readonly entry: Entry }) {
    if (entry.kind === "file") return { path, entry };
    throw new FileFault(entry.kind === "directory" ? "EISDIR" : "EINVAL");
  }

  #require(path: string, level: number, operation: string): void {
    const scope = this.#scope(path);
    if (scope.level >= level) return;
    this.#parts.onDenied(path, operation, scope);
    throw new FileFault("EACCES");
  }

  #requireNew(path: string, operation: string): void {
    this.#require(path, LEVEL.write, operation);
    if (nameOf(path).startsWith(RESERVED)) throw new FileFault("EPERM");
  }

  #requireReplaceable(isDirectory: boolean, target: { readonly path: string; readonly entry: Entry }): void {
    if (target.entry.kind !== "directory") {
      if (isDirectory) throw new FileFault("ENOTDIR");
      return;
    }
    if (!isDirectory) throw new FileFault("EISDIR");
    if (this.#visibleNames(target.path).length > 0) throw new FileFault("ENOTEMPTY");
  }

  #requireRoom(path: string, growth: number): void {
    const { quotaBytes, overlay, onOverQuota } = this.#parts;
    if (quotaBytes === undefined || overlay.bytes + growth <= quotaBytes) return;
    onOverQuota(path, "write");
    throw new FileFault("EDQUOT");
  }

  #scope(path: string): Scope {
    return this.#parts.policy().decide(path);
  }

  #describe({ path, entry }: { readonly path: string; readonly entry: Entry }): ViewEntry {
    const level = levelName(this.#scope(path).level);
    return {
      path,
      kind: entry.kind,
      size: sizeOf(entry),
      mode: shownMode(entry, level),
      target: entry.kind === "symlink" ? entry.target : "",
      modifiedAtMs: entry.modifiedAtMs,
      // What is seen without a level of its own is a directory on the way to something visible.
      permission: level === "none" ? "view" : level,
    };
  }
}

/** Mode bits agree with the rules. */
function shownMode(entry: Entry, level: Level): number {
  const mode = modeOf(entry) & 0o777;
  if (entry.kind === "symlink" || level === "write") return mode;
  if (entry.kind === "file" && level === "view") return 0;
  return mode & ~0o222;
}

const WORKSPACE = "/workspace";

/** An absolute link leads into the workspace, or out of what there is. */
function wayOf(target: string): { readonly way: readonly string[]; readonly fromRoot: boolean } {
  const fromRoot = target.startsWith("/");
  if (fromRoot && target !== WORKSPACE && !target.startsWith(`${WORKSPACE}/`)) throw new FileFault("EXDEV");
  const inner = fromRoot ? target.slice(WORKSPACE.length) : target;
  return { way: inner.split("/").filter((name) => name !== "" && name !== "."), fromRoot };
}
