import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, rename, rm, rmdir, symlink, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CopySource, LocalEntry, NewEntry } from "./entry.ts";

/** What is to come to a path, or to go from it. */
export interface Installation {
  readonly path: string;
  readonly names: readonly string[];
  /** Absent: nothing is to be there. */
  readonly wanted: NewEntry | undefined;
  /** What was found there. */
  readonly local: LocalEntry | undefined;
  /** It is still what was found, and so are the directories on the way. */
  readonly isStill: () => Promise<boolean>;
}

type Mode = Pick<NewEntry, "kind" | "mode">;

const NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const PERMISSION_BITS = 0o777;
const CHANGED = "it changed here meanwhile";

/** Does what was decided. Content goes to a temporary name first: a path has the old or the new one, never half. */
export class LocalWriter {
  readonly #directory: string;
  readonly #source: CopySource;
  /** Set in the end: a directory may end up unwritable. */
  readonly #directoryModes = new Map<string, number>();

  constructor(directory: string, source: CopySource) {
    this.#directory = directory;
    this.#source = source;
  }

  /** Already, though it still shows. */
  isGone(_path: string): boolean {
    return false;
  }

  /** Already, though it does not show yet. */
  willBeDirectory(_path: string): boolean {
    return false;
  }

  async isEmpty({ path }: Installation): Promise<boolean> {
    return (await readdir(join(this.#directory, path))).length === 0;
  }

  /** The missing directories on the way; tells which. */
  async makeParents(names: readonly string[]): Promise<string[]> {
    const made: string[] = [];
    for (let depth = 1; depth < names.length; depth += 1) {
      const path = names.slice(0, depth).join("/");
      try {
        await mkdir(join(this.#directory, path));
        made.push(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
    }
    return made;
  }

  /** Gives the reason why it was not done, if there is one. */
  async install(installation: Installation): Promise<string | undefined> {
    const { wanted } = installation;
    if (wanted === undefined) return await this.#remove(installation);
    if (wanted.kind === "directory") return await this.#makeDirectory(installation, wanted.mode);
    const place = join(this.#directory, installation.path);
    const temporary = join(dirname(place), `.agentfense-${randomUUID()}.tmp`);
    try {
      if (wanted.kind === "symlink") await symlink(wanted.target, temporary);
      else await this.#writeFile(temporary, installation.path, wanted);
      if (!(await installation.isStill())) return CHANGED;
      if (installation.local?.kind === "directory") await rmdir(place);
      await rename(temporary, place);
      return undefined;
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async setMode(path: string, { kind, mode }: Mode): Promise<void> {
    if (kind === "directory") this.#directoryModes.set(path, mode);
    else if (kind === "file") await this.#changeMode(path, mode, 0);
  }

  /** The modes of directories, the deepest first. */
  async finish(): Promise<void> {
    for (const [path, mode] of [...this.#directoryModes].reverse()) {
      // One that is gone or is somebody else's by now keeps what it has.
      await this.#changeMode(path, mode, constants.O_DIRECTORY ?? 0).catch(() => {});
    }
  }

  async #remove({ path, local, isStill }: Installation): Promise<string | undefined> {
    if (!(await isStill())) return CHANGED;
    const place = join(this.#directory, path);
    await (local?.kind === "directory" ? rmdir(place) : unlink(place));
    return undefined;
  }

  async #makeDirectory({ path, local, isStill }: Installation, mode: number): Promise<string | undefined> {
    if (!(await isStill())) return CHANGED;
    const place = join(this.#directory, path);
    if (local !== undefined) await unlink(place);
    await mkdir(place, { mode: 0o700 });
    this.#directoryModes.set(path, mode);
    return undefined;
  }

  async #writeFile(temporary: string, path: string, wanted: NewEntry & { readonly kind: "file" }): Promise<void> {
    const file = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NOFOLLOW, 0o600);
    try {
      const digest = createHash("sha256");
      for await (const piece of this.#source.content(path)) {
        digest.update(piece);
        await file.writeFile(piece);
      }
      if (digest.digest("hex") !== wanted.sha256) throw new Error("what arrived is not what the codebase has");
      await file.chmod(wanted.mode & PERMISSION_BITS);
    } finally {
      await file.close();
    }
  }

  async #changeMode(path: string, mode: number, flags: number): Promise<void> {
    const place = await open(join(this.#directory, path), constants.O_RDONLY | NOFOLLOW | flags);
    try {
      const bits = mode & PERMISSION_BITS;
      if (((await place.stat()).mode & PERMISSION_BITS) !== bits) await place.chmod(bits);
    } finally {
      await place.close();
    }
  }
}

/** Does nothing, and remembers what it would have done. */
export class DryRun {
  readonly #directory: string;
  readonly #gone = new Set<string>();
  readonly #directories = new Set<string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  isGone(path: string): boolean {
    return this.#gone.has(path) || this.#isBelowNew(path);
  }

  willBeDirectory(path: string): boolean {
    return this.#directories.has(path) || this.#isBelowNew(path);
  }

  async isEmpty({ path }: Installation): Promise<boolean> {
    const names = await readdir(join(this.#directory, path));
    return names.every((name) => this.#gone.has(`${path}/${name}`));
  }

  async makeParents(): Promise<string[]> {
    return [];
  }

  async install({ path, wanted }: Installation): Promise<undefined> {
    if (wanted === undefined) this.#gone.add(path);
    if (wanted?.kind === "directory") this.#directories.add(path);
  }

  async setMode(): Promise<void> {}

  #isBelowNew(path: string): boolean {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      if (this.#directories.has(path.slice(0, at))) return true;
    }
    return false;
  }
}
