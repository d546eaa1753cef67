import { posix } from "node:path";
import { directoryEntry } from "../files/entry.ts";
import { FileFault } from "../files/file-fault.ts";
import type { GuardedView, ViewEntry } from "../files/guarded-view.ts";
import { joined, nameOf, parentOf } from "../files/paths.ts";

/** What programs see below "/": the workspace under its rules, and places of the box's own. */
export interface Mount {
  /** "/workspace" */
  readonly at: string;
  readonly view: GuardedView;
}

const NULL_DEVICE = "/dev/null";

/** The files of a box, by absolute paths. Refusals are FileFaults. */
export class MountedFiles {
  readonly #mounts: readonly Mount[];

  constructor(mounts: readonly Mount[]) {
    this.#mounts = mounts;
  }

  /** An absolute path for what a program was given. */
  resolve(cwd: string, path: string): string {
    const normal = posix.resolve(cwd, path);
    return normal === "" ? "/" : normal;
  }

  stat(path: string, options: { readonly follow: boolean } = { follow: true }): ViewEntry {
    const place = this.#find(path);
    if (place !== undefined) return inside(() => ({ ...place.view.stat(place.path, options), path }));
    if (path !== NULL_DEVICE && this.#namesAt(path).length === 0) throw new FileFault("ENOENT");
    const kind = path === NULL_DEVICE ? "file" : "directory";
    const { mode, modifiedAtMs } = directoryEntry(0o555, 0);
    return { path, kind, mode, modifiedAtMs, size: 0, target: "", permission: "view" };
  }

  exists(path: string): boolean {
    try {
      this.stat(path);
      return true;
    } catch (error) {
      if (error instanceof FileFault) return false;
      throw error;
    }
  }

  isDirectory(path: string): boolean {
    return this.exists(path) && this.stat(path).kind === "directory";
  }

  list(path: string): ViewEntry[] {
    const place = this.#find(path);
    if (place === undefined) return this.#namesAt(path).map((name) => this.stat(joined(path, name)));
    const entries = inside(() => place.view.list(place.path));
    return entries.map((entry) => ({ ...entry, path: joined(path, nameOf(entry.path)) }));
  }

  read(path: string): Uint8Array {
    if (path === NULL_DEVICE) return new Uint8Array();
    const place = this.#find(path);
    if (place === undefined) throw new FileFault(this.stat(path).kind === "directory" ? "EISDIR" : "ENOENT");
    return inside(() => place.view.read(place.path));
  }

  /**
   * Opens for writing, as a shell does before it runs anything: makes the file, and empties it unless it is added to.
   */
  open(path: string, options: { readonly append: boolean }): void {
    const place = path === NULL_DEVICE ? undefined : this.#changeable(path);
    const write = place?.view.openToWrite(place.path, options);
    if (!(options.append && this.exists(path))) write?.(new Uint8Array());
  }

  write(path: string, content: Uint8Array, options: { readonly append?: boolean; readonly mode?: number } = {}): void {
    if (path === NULL_DEVICE) return;
    const place = this.#changeable(path);
    place.view.write(place.path, content, options);
  }

  makeDirectory(path: string, options: { readonly recursive?: boolean } = {}): void {
    if (options.recursive === true && this.isDirectory(path)) return;
    if (this.#find(path) === undefined && this.exists(path)) throw new FileFault("EEXIST");
    const place = this.#changeable(path);
    place.view.makeDirectory(place.path, options);
  }

  /** A file, or a directory that shows as empty. */
  remove(path: string): void {
    const place = this.#changeable(path);
    place.view.remove(place.path);
  }

  move(from: string, to: string): void {
    const [source, target] = [this.#changeable(from), this.#changeable(to)];
    if (source.view !== target.view) throw new FileFault("EXDEV");
    source.view.move(source.path, target.path);
  }

  #find(path: string): { readonly view: GuardedView; readonly path: string } | undefined {
    const mount = this.#mounts.find(({ at }) => path === at || path.startsWith(`${at}/`));
    return mount && { view: mount.view, path: path.slice(mount.at.length) || "/" };
  }

  #changeable(path: string): { readonly view: GuardedView; readonly path: string } {
    const place = this.#find(path);
    if (place !== undefined) return place;
    // The box's own directories are read-only.
    throw new FileFault(this.#namesAt(parentOf(path)).length > 0 ? "EACCES" : "ENOENT");
  }

  /** Names that lead to a mount. */
  #namesAt(directory: string): string[] {
    const prefix = directory === "/" ? "/" : `${directory}/`;
    const names = this.#mounts.flatMap(({ at }) =>
      at.startsWith(prefix) ? [at.slice(prefix.length).split("/")[0]!] : [],
    );
    return [...new Set(names)].sort();
  }
}

/** A link that leads out of the workspace leads to nothing here. */
function inside<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof FileFault && error.errno === "EXDEV" ? new FileFault("ENOENT") : error;
  }
}
