/**
 * Open files or directories by handle. A handle is never used twice, so a request that comes late with one that was closed
 * finds nothing; 0 is never given out and can stand for "no handle".
 */
export class HandleTable<T> {
  readonly #open = new Map<number, T>();
  #nextHandle = 1;

  get size(): number {
    return this.#open.size;
  }

  open(value: T): number {
    const handle = this.#nextHandle++;
    this.#open.set(handle, value);
    return handle;
  }

  get(handle: number): T | undefined {
    return this.#open.get(handle);
  }

  /** Returns what the handle stood for, once. */
  close(handle: number): T | undefined {
    const value = this.#open.get(handle);
    this.#open.delete(handle);
    return value;
  }

  /** What is still open when the mount is gone. */
  values(): Iterable<T> {
    return this.#open.values();
  }
}
