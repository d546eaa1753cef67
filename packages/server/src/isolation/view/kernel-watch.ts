import { syscalls } from "@agentfense/fuse";
import { IsolationError } from "../backend/isolation-error.ts";

const { Inotify } = syscalls;

/** What the kernel reports about a directory that is marked. */
export interface KernelEvent {
  readonly mark: number;
  readonly mask: number;
  /** The name of the entry, in bytes; "" when it is about the directory itself. */
  readonly name: string;
}

/** Whoever has marks. */
export interface MarkOwner {
  happened(event: KernelEvent): void;
  /** Events were lost. */
  overflowed(): void;
}

/** Node can wait for such a descriptor only with a thread of its pool, which is too small for that; so it is asked. */
const PERIOD_MS = 20;
const BUFFER_BYTES = 64 * 1024;
/** Between two looks at the clock of everybody else. */
const MOST_READS = 8;
const MOST_EARLY = 4096;
/** struct inotify_event: wd i32, mask u32, cookie u32, len u32, then the name padded with NULs. */
const HEADER_BYTES = 16;

/**
 * The inotify instance of the process: a user may have few of them. Marks are set and removed by the thread of the views,
 * for that waits in the kernel; to read events never does. Whose event it is follows from the mark: no two file systems share
 * one.
 */
export class KernelWatch implements Disposable {
  readonly #owners = new Map<number, MarkOwner>();
  readonly #buffer = Buffer.alloc(BUFFER_BYTES);
  /** Events of marks that somebody is about to learn of. */
  #early: KernelEvent[] = [];
  #expecting = 0;
  #descriptor = -1;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Has marks set: `work` does it and gives them, after `adopt` the owner is told what happens at them, from the first event
   * on.
   */
  async mark<T extends { readonly marks: readonly { readonly mark: number }[] }>(
    owner: MarkOwner,
    work: (descriptor: number) => Promise<T>,
    adopt: (marked: T) => void,
  ): Promise<void> {
    const descriptor = this.#open();
    this.#expecting += 1;
    try {
      const marked = await work(descriptor);
      adopt(marked);
      const own = new Set(marked.marks.map(({ mark }) => mark));
      for (const mark of own) this.#owners.set(mark, owner);
      const early = this.#early.filter(({ mark }) => own.has(mark));
      this.#early = this.#early.filter(({ mark }) => !own.has(mark));
      for (const event of early) this.#dispatch(event);
    } finally {
      this.#expecting -= 1;
      if (this.#expecting === 0) this.#early = [];
      this.#rest();
    }
  }

  /** For whoever removes marks. */
  get descriptor(): number {
    return this.#descriptor;
  }

  /** Whoever had these marks hears of them no more. */
  forget(marks: Iterable<number>): void {
    for (const mark of marks) this.#owners.delete(mark);
    this.#rest();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#owners.clear();
    if (this.#descriptor >= 0) syscalls.close(this.#descriptor);
    this.#descriptor = -1;
  }

  #open(): number {
    if (this.#descriptor < 0) {
      const descriptor = syscalls.inotifyInit();
      if (descriptor < 0) {
        throw new IsolationError("RESOURCES_EXHAUSTED", "the host has no more watches", {
          hint: "raise fs.inotify.max_user_instances on the server",
        });
      }
      this.#descriptor = descriptor;
    }
    this.#timer ??= setInterval(() => this.#read(), PERIOD_MS);
    return this.#descriptor;
  }

  /** Without marks there is nothing to ask for. */
  #rest(): void {
    if (this.#owners.size > 0 || this.#expecting > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #read(): void {
    for (let reads = 0; reads < MOST_READS; reads++) {
      const filled = syscalls.read(this.#descriptor, this.#buffer, BUFFER_BYTES);
      if (filled <= 0) return;
      for (let at = 0; at < filled; ) {
        const length = this.#buffer.readUInt32LE(at + 12);
        const name = this.#buffer.toString("latin1", at + HEADER_BYTES, at + HEADER_BYTES + length);
        const end = name.indexOf("\0");
        this.#dispatch({
          mark: this.#buffer.readInt32LE(at),
          mask: this.#buffer.readUInt32LE(at + 4),
          name: end < 0 ? name : name.slice(0, end),
        });
        at += HEADER_BYTES + length;
      }
    }
  }

  #dispatch(event: KernelEvent): void {
    if (event.mask & Inotify.Q_OVERFLOW) {
      for (const owner of new Set(this.#owners.values())) owner.overflowed();
      return;
    }
    const owner = this.#owners.get(event.mark);
    if (owner !== undefined) {
      if (event.mask & Inotify.IGNORED) this.#owners.delete(event.mark);
      owner.happened(event);
    } else if (this.#expecting > 0 && this.#early.length < MOST_EARLY) this.#early.push(event);
  }
}
