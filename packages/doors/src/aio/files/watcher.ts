import type { FileWatch, Sandbox } from "@agentfense/sdk";
import { type SeenChange, seenChanges } from "../../changes.ts";
import { exclusion, meaning } from "./tree.ts";

const MOST_EVENTS = 1000;

interface WatchEvent {
  readonly seq: number;
  readonly type: "create" | "write" | "remove";
  readonly path: string;
  readonly relative_path: string;
  readonly old_path: null;
  readonly is_dir: boolean;
  readonly timestamp: number;
  readonly mtime: number | null;
  readonly size: number | null;
  readonly inode: null;
}

/** Changes below a path, kept until they are asked for; the newest thousand. */
export class Watcher {
  readonly path: string;
  readonly recursive: boolean;
  readonly createdAt: Date = new Date();
  lastUsedAt: Date = new Date();
  /** Somebody may come back for what happened: only the least used one makes room. */
  readonly isBusy = false;
  readonly #sandbox: Sandbox;
  readonly #watch: FileWatch;
  readonly #isMeant: (relative: string) => boolean;
  readonly #events: WatchEvent[] = [];
  #sequence = 0;
  #news = Promise.withResolvers<void>();
  #isOver = false;

  static async open(sandbox: Sandbox, options: WatcherOptions): Promise<Watcher> {
    const watch = sandbox.files.watch(options.path, { recursive: options.recursive });
    await watch.ready;
    return new Watcher(sandbox, watch, options);
  }

  private constructor(sandbox: Sandbox, watch: FileWatch, { path, recursive, exclude, include }: WatcherOptions) {
    this.path = path;
    this.recursive = recursive;
    this.#sandbox = sandbox;
    this.#watch = watch;
    const [excluded, included] = [exclude.map(exclusion), include.map(meaning)];
    this.#isMeant = (relative) =>
      !excluded.some((isExcluded) => isExcluded(relative)) &&
      (included.length === 0 || included.some((isIncluded) => isIncluded(relative)));
    void this.#follow();
  }

  /** The sandbox has stopped, or the watch was closed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get latest(): number {
    return this.#sequence;
  }

  /** Resolves with the next event. */
  get news(): Promise<void> {
    return this.#isOver ? Promise.resolve() : this.#news.promise;
  }

  /** What came after a sequence number. `overflow`: and something else, which is lost. */
  after(cursor: number, limit: number): { readonly events: readonly WatchEvent[]; readonly overflow: boolean } {
    const oldest = this.#events[0]?.seq ?? this.#sequence + 1;
    return { events: this.#events.filter(({ seq }) => seq > cursor).slice(0, limit), overflow: cursor + 1 < oldest };
  }

  async close(): Promise<void> {
    this.#watch.close();
  }

  async #follow(): Promise<void> {
    try {
      const watched = { directory: this.path, watch: this.#watch };
      const changes = seenChanges(this.#sandbox, watched, ({ filename }) => this.#isMeant(filename));
      for await (const change of changes) this.#record(change);
    } catch {
      // The server is gone, or the sandbox: nobody waits here who could be told. Who asks learns that the watch is over.
    }
    this.#isOver = true;
    this.#ring();
  }

  #record({ type, name, path, stat }: SeenChange): void {
    this.#sequence += 1;
    this.#events.push({
      seq: this.#sequence,
      type,
      path,
      relative_path: name,
      old_path: null,
      is_dir: stat?.isDirectory() ?? false,
      timestamp: Date.now() / 1000,
      mtime: stat === undefined ? null : stat.modifiedAt.getTime() / 1000,
      size: stat?.size ?? null,
      inode: null,
    });
    if (this.#events.length > MOST_EVENTS) this.#events.shift();
    this.#ring();
  }

  #ring(): void {
    const heard = this.#news;
    this.#news = Promise.withResolvers();
    heard.resolve();
  }
}

interface WatcherOptions {
  readonly path: string;
  readonly recursive: boolean;
  readonly exclude: readonly string[];
  readonly include: readonly string[];
}
