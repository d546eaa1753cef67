/** A complete file that waits for its name until its content is safely on the disk; disposed of, it never was. */
export interface NamelessFile extends Disposable {
  readonly fd: number;
  readonly size: number;
  /** Gives it its name: 0 or an errno. */
  place(): number;
}

/** Waits until open files or directories are on the disk. Tells of which that failed, with its errno. */
export type Keep = (fds: readonly number[]) => ReadonlyMap<number, number>;

interface Waiting {
  readonly file: NamelessFile;
  readonly placed: (errno: number) => void;
}

interface Ending {
  /** In which names were given. */
  readonly directory: number;
  readonly held: Disposable;
  readonly run: (errno: number) => void;
}

// Two descriptors for each file and each ending. The bytes are what an interrupted apply has to copy again.
const MOST = { files: 128, endings: 128, bytes: 32 << 20 };

/**
 * Waiting for a disk takes as long for a hundred files as for one. So files are written without a name until there are many,
 * the disk is waited for once, all get their names, and what has to come after that in their directories follows, once the
 * names are on the disk too.
 */
export class Batch implements Disposable {
  readonly #keep: Keep;
  readonly #most: { readonly files: number; readonly endings: number; readonly bytes: number };
  readonly #files: Waiting[] = [];
  readonly #endings: Ending[] = [];
  #bytes = 0;

  /** Without a disk to wait for nothing waits. */
  constructor(keep: Keep | undefined) {
    this.#keep = keep ?? (() => new Map());
    this.#most = keep === undefined ? { files: 1, endings: 1, bytes: 0 } : MOST;
  }

  add(file: NamelessFile, placed: (errno: number) => void): void {
    this.#files.push({ file, placed });
    this.#bytes += file.size;
    if (this.#files.length >= this.#most.files || this.#bytes >= this.#most.bytes) this.flush();
  }

  /** Runs when all that was added before has its name, in the order of the calls; `held` is disposed of after that. */
  end(ending: Ending): void {
    this.#endings.push(ending);
    if (this.#endings.length >= this.#most.endings) this.flush();
  }

  flush(): void {
    const lost = this.#keep(this.#files.map(({ file }) => file.fd));
    for (let next = this.#files.shift(); next !== undefined; next = this.#files.shift()) {
      using file = next.file;
      next.placed(lost.get(file.fd) ?? file.place());
    }
    this.#bytes = 0;
    const failed = this.#keep(this.#endings.map(({ directory }) => directory));
    for (let next = this.#endings.shift(); next !== undefined; next = this.#endings.shift()) {
      using _held = next.held;
      next.run(failed.get(next.directory) ?? 0);
    }
  }

  /** What still waits has not happened. */
  [Symbol.dispose](): void {
    for (const { file } of this.#files.splice(0)) file[Symbol.dispose]();
    for (const { held } of this.#endings.splice(0)) held[Symbol.dispose]();
  }
}
