import { randomUUID } from "node:crypto";
import type { FileWatch, Sandbox } from "@agentfense/sdk";
import { type SeenChange, seenChanges } from "../../changes.ts";
import * as shape from "../../shape.ts";
import { newsWithin } from "../commands/waiting.ts";
import { eventStream, type ServerEvent } from "../envelope.ts";
import { type AioCall, bare, post, type Route } from "../route.ts";
import { fileAt } from "./content.ts";
import { onFile } from "./file-refusal.ts";
import { exclusion, meaning } from "./tree.ts";

// Changes of files. These answers are plain JSON, without the envelope.

const EXCLUDED = [".git", "node_modules", "__pycache__", ".venv", "*.pyc", "*.pyo", ".DS_Store", "*.swp", "*.swo"];
const patterns = shape.list(shape.string().min(1).max(256)).max(32);
const LONGEST_WAIT_S = 300;

export const WATCH_ROUTES: readonly Route[] = [
  post(
    "v1/file/watch",
    shape.object({
      path: shape.string(),
      recursive: shape.boolean().default(true),
      exclude: patterns.default(EXCLUDED),
      debounce: shape.number().min(0).default(300),
      include_patterns: patterns.default([]),
    }),
    async (call, { path, recursive, exclude, include_patterns }) => {
      const at = fileAt(call, path, "watch");
      const id = randomUUID();
      const { watchers } = call.place;
      const options = { path: at.path, recursive, exclude, include: include_patterns };
      const watcher = await watchers.open(id, () => onFile(at, () => Watcher.open(at.sandbox, options)));
      return Response.json(described(id, watcher));
    },
  ),
  post(
    "v1/file/watch/wait",
    shape.object({
      path: shape.string(),
      timeout: shape.number().min(0).max(LONGEST_WAIT_S).default(30),
      event_types: shape.list(shape.oneOf(["create", "write", "remove", "rename", "chmod"])).optional(),
    }),
    waitForOne,
  ),
  bare("GET", "v1/file/watch", async ({ place }) =>
    Response.json({ watchers: place.watchers.all.map(([id, watcher]) => described(id, watcher)) }),
  ),
  post(
    "v1/file/watch/{watcher_id}/poll",
    shape.object({
      cursor: shape.int().min(0).default(0),
      limit: shape.int().min(1).max(1000).default(100),
      timeout: shape.number().min(0).max(LONGEST_WAIT_S).default(0),
    }),
    async ({ place, parameters, request }, { cursor, limit, timeout }) => {
      const watcher = place.watchers.require(parameters.watcher_id!);
      if (watcher.latest <= cursor) await newsWithin(watcher.news, timeout * 1000, request.signal);
      const { events, overflow } = watcher.after(cursor, limit);
      return Response.json({
        watcher_id: parameters.watcher_id,
        events,
        cursor: events.at(-1)?.seq ?? cursor,
        overflow,
        has_more: (events.at(-1)?.seq ?? cursor) < watcher.latest,
      });
    },
  ),
  bare("GET", "v1/file/watch/{watcher_id}/events", async ({ place, parameters, request }) => {
    const id = parameters.watcher_id!;
    return eventStream(eventsOf(id, place.watchers.require(id), request.signal));
  }),
  bare("DELETE", "v1/file/watch/{watcher_id}", async ({ place, parameters }) => {
    await place.watchers.remove(parameters.watcher_id!);
    return Response.json({ success: true, watcher_id: parameters.watcher_id });
  }),
];

async function waitForOne(
  call: AioCall,
  input: { readonly path: string; readonly timeout: number; readonly event_types?: readonly string[] | undefined },
): Promise<Response> {
  const at = fileAt(call, input.path, "watch");
  const { signal } = call.request;
  const options = { path: at.path, recursive: true, exclude: [], include: [] };
  // In the table like others: that bounds how many wait.
  const id = randomUUID();
  const watcher = await call.place.watchers.open(id, () => onFile(at, () => Watcher.open(at.sandbox, options)));
  const endsAt = performance.now() + input.timeout * 1000;
  try {
    for (let cursor = 0; !watcher.isOver && !signal.aborted; ) {
      const { news } = watcher;
      const { events } = watcher.after(cursor, 1000);
      const event = events.find(({ type }) => input.event_types?.includes(type) ?? true);
      if (event !== undefined) return Response.json({ triggered: true, timed_out: false, event });
      cursor = events.at(-1)?.seq ?? cursor;
      const leftMs = endsAt - performance.now();
      if (leftMs <= 0) break;
      await newsWithin(news, leftMs, signal);
    }
    return Response.json({ triggered: false, timed_out: true, event: null });
  } finally {
    call.place.watchers.forget(id);
    await watcher.close();
  }
}

async function* eventsOf(
  id: string,
  watcher: Watcher,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent, void, undefined> {
  yield { event: "watch_started", data: described(id, watcher) };
  for (let cursor = 0; !signal.aborted; ) {
    const { events, overflow } = watcher.after(cursor, 100);
    if (overflow) yield { event: "overflow", data: { watcher_id: id } };
    for (const event of events) yield { event: "file_change", id: `${id}:${event.seq}`, data: event };
    cursor = events.at(-1)?.seq ?? cursor;
    if (watcher.isOver) return;
    if (watcher.latest === cursor) await newsWithin(watcher.news, Number.POSITIVE_INFINITY, signal);
  }
}

function described(id: string, watcher: Watcher): object {
  return {
    watcher_id: id,
    path: watcher.path,
    recursive: watcher.recursive,
    created_at: watcher.createdAt.toISOString(),
    status: watcher.isOver ? "stopped" : "active",
  };
}

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
