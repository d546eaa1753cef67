/**
 * The names of a directory in a fixed order. The position of a name is its readdir offset, and it never changes while
 * the listing lives: what is removed leaves a hole, what is new comes last. So a reader that deletes while it reads
 * neither misses nor repeats a name. Only visible names are ever in it, hence offsets tell nothing about hidden ones.
 */
export class Listing {
  /** The rules under which it was made; see Tree.edition. */
  readonly edition: number;
  /** "" marks a hole. */
  readonly names: string[] = [];
  /** Type as in d_type. */
  readonly types: number[] = [];
  /** Inode number of the entry; 0 when it has to be looked up. */
  readonly inodes: number[] = [];
  readonly #positions = new Map<string, number>();
  /** Names of directories that the rules hide, and that may no longer lead to anything. */
  readonly #doubtful = new Set<string>();
  holes = 0;

  constructor(edition: number) {
    this.edition = edition;
  }

  add(name: string, type: number, ino: number): void {
    this.#positions.set(name, this.names.length);
    this.names.push(name);
    this.types.push(type);
    this.inodes.push(ino);
  }

  /** Where a name stands; undefined when it is not listed. */
  positionOf(name: string): number | undefined {
    return this.#positions.get(name);
  }

  remove(name: string): void {
    const position = this.positionOf(name);
    if (position === undefined) return;
    this.#positions.delete(name);
    this.names[position] = "";
    this.holes += 1;
  }

  doubt(name: string): void {
    if (this.#positions.has(name)) this.#doubtful.add(name);
  }

  isDoubtful(name: string): boolean {
    return this.#doubtful.size > 0 && this.#doubtful.has(name);
  }

  believe(name: string): void {
    this.#doubtful.delete(name);
  }
}
