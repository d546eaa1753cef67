import { syscalls } from "@agentfense/fuse";
import { ownRights } from "../filesystem/own-rights.ts";
import { atOnce } from "../filesystem/walks.ts";
import { type DeltaDirectory, OPAQUE_MARKER, readDeltaDirectory } from "../filesystem/whiteouts.ts";
import type { EntryHandle } from "./comparison.ts";

const { FileType, Open, Stat } = syscalls;

/**
 * One directory of a delta and of the layers that it lies on, read as one: what lies above counts. The descriptors are the caller's, the
 * topmost first.
 */
export class ChainDirectory implements DeltaDirectory {
  readonly names = new Set<string>();
  readonly whiteouts = new Map<string, string>();
  readonly meaningless: string[] = [];
  /** What shuts it against the codebase. */
  readonly mark: EntryHandle | undefined;
  readonly #directories: readonly number[];
  /** By name of an entry or of what is deleted: the directory that says so. */
  readonly #at = new Map<string, number>();

  private constructor(reads: readonly (readonly [directory: number, read: DeltaDirectory])[]) {
    this.#directories = reads.map(([directory]) => directory);
    for (const [directory, read] of reads) {
      const isNew = (name: string): boolean => !this.#at.has(name);
      const [names, deleted] = [[...read.names].filter(isNew), [...read.whiteouts].filter(([name]) => isNew(name))];
      for (const name of names) this.names.add(name);
      for (const [name, file] of deleted) this.whiteouts.set(name, file);
      for (const name of [...names, ...deleted.map(([deletedName]) => deletedName)]) this.#at.set(name, directory);
      this.meaningless.push(...read.meaningless);
      if (read.opaque) this.mark = { directory, name: OPAQUE_MARKER };
    }
  }

  /** Or a negated errno. */
  static read(directories: readonly number[]): ChainDirectory | number {
    const reads: [number, DeltaDirectory][] = [];
    for (const directory of directories) {
      const read = directory < 0 ? directory : atOnce(readDeltaDirectory(directory));
      if (typeof read === "number") return read;
      reads.push([directory, read]);
      if (read.opaque) break;
    }
    return new ChainDirectory(reads);
  }

  get opaque(): boolean {
    return this.mark !== undefined;
  }

  /** Where an entry is, or the file that says that it is deleted. */
  placeOf(name: string): EntryHandle {
    const file = this.names.has(name) ? name : (this.whiteouts.get(name) ?? name);
    return { directory: this.#at.get(name) ?? this.#directories[0]!, name: file };
  }

  /** Opens the directory of this name in each layer that has a part in it. The first may be a negated errno. */
  openBelow(name: string): number[] {
    const { directory } = this.placeOf(name);
    const opened = [syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY)];
    const stat = new Stat();
    for (const lower of this.#directories.slice(this.#directories.indexOf(directory) + 1)) {
      if (syscalls.statat(opened.at(-1)!, OPAQUE_MARKER, stat) === 0) break;
      if (syscalls.statat(lower, name, stat) < 0) continue;
      const fd = stat.type === FileType.DIRECTORY ? syscalls.openat(lower, name, Open.PATH | Open.DIRECTORY) : -1;
      if (fd < 0) break;
      opened.push(fd);
    }
    return opened;
  }
}

/** As ownRights, of several. */
export function ownRightsOf(directories: readonly number[]): Disposable {
  const rights = new DisposableStack();
  for (const directory of directories) if (directory >= 0) rights.use(ownRights(directory));
  return rights;
}
