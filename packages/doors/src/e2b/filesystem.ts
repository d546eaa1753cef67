import { randomUUID } from "node:crypto";
import type { FileChangeCause, FileWatch, Sandbox } from "@agentfense/sdk";
import { look } from "../changes.ts";
import * as shape from "../shape.ts";
import type { Method, Unary } from "./connect.ts";
import { E2bFailure, notOffered } from "./failure.ts";
import { type Entry, entryOf, filesOf } from "./files.ts";
import { absolutePath, inWorkspace } from "./paths.ts";
import { refusalOf, userIn } from "./processes.ts";

// filesystem.Filesystem: everything about files but their content.

const pathShape = shape.object({ path: shape.string().default("") });
const listShape = shape.object({ path: shape.string().default(""), depth: shape.int().min(0).max(1000).default(1) });
const moveShape = shape.object({ source: shape.string().min(1), destination: shape.string().min(1) });
const watchShape = shape.object({
  path: shape.string().default(""),
  recursive: shape.boolean().default(false),
  includeEntry: shape.boolean().default(false),
});
const watcherShape = shape.object({ watcherId: shape.string() });

/** Watchers that are asked, of one caller in one sandbox. */
const MOST_WATCHERS = 32;
const MOST_EVENTS = 1000;

/** Keeps what changes until it is asked for. When it is too much the oldest goes. */
class Watcher {
  readonly #watch: FileWatch;
  #events: object[] = [];
  #isOver = false;

  constructor(watch: FileWatch, changes: AsyncIterable<object>) {
    this.#watch = watch;
    void this.#follow(changes);
  }

  take(): readonly object[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  close(): void {
    this.#watch.close();
  }

  async #follow(changes: AsyncIterable<object>): Promise<void> {
    try {
      for await (const change of changes) {
        this.#events.push(change);
        if (this.#events.length > MOST_EVENTS) this.#events.shift();
      }
    } catch {
      // The sandbox has stopped: who asks next is told that there is no watcher.
    }
    this.#isOver = true;
  }
}

/** Those of one caller in one sandbox. */
export class Watchers {
  readonly #watchers = new Map<string, Watcher>();

  add(watch: FileWatch, changes: AsyncIterable<object>): string {
    for (const [id, watcher] of this.#watchers) if (watcher.isOver) this.#watchers.delete(id);
    if (this.#watchers.size >= MOST_WATCHERS) {
      watch.close();
      throw new E2bFailure("resource_exhausted", `there are ${MOST_WATCHERS} watchers already`);
    }
    const id = randomUUID();
    this.#watchers.set(id, new Watcher(watch, changes));
    return id;
  }

  find(id: string): Watcher {
    const watcher = this.#watchers.get(id);
    if (watcher !== undefined) return watcher;
    throw new E2bFailure("not_found", `watcher not found: ${id}`);
  }

  remove(id: string): void {
    this.find(id).close();
    this.#watchers.delete(id);
  }

  close(): void {
    for (const id of this.#watchers.keys()) this.remove(id);
  }
}

export function filesystemMethods(sandbox: Sandbox, watchers: Watchers): Readonly<Record<string, Method>> {
  const unary = (run: (message: object, files: ReturnType<typeof filesOf>) => Promise<object>): Method => {
    const checked: Unary = async (message, { headers, signal }) => {
      userIn(headers);
      return await run(message, filesOf(sandbox, signal));
    };
    return { kind: "unary", run: checked };
  };

  async function watched(message: object, signal?: AbortSignal) {
    const { path: given, recursive, includeEntry } = shape.parsed(watchShape, message, refusalOf);
    const path = absolutePath(given);
    const directory = inWorkspace(path);
    if (directory === undefined) throw notOffered("watching directories outside of /home/user and /workspace");
    if (!(await sandbox.files.stat(directory)).isDirectory()) {
      throw new E2bFailure("invalid_argument", `path ${path} is not a directory`);
    }
    const watch = sandbox.files.watch(directory, { recursive, signal });
    await watch.ready;
    return { watch, changes: events(path, directory, watch, includeEntry) };
  }

  async function* events(path: string, directory: string, watch: FileWatch, includeEntry: boolean) {
    const root = directory === "/" ? "" : directory;
    for await (const { filename: name, eventType, cause } of watch) {
      if (name === "") continue;
      const known = cause === undefined ? undefined : EVENTS[cause];
      const stat = known === undefined || includeEntry ? await look(sandbox, `${root}/${name}`) : undefined;
      // Where it was not told what happened, what is there now says it.
      const type = known ?? EVENTS[stat === undefined ? "removed" : eventType === "rename" ? "made" : "written"];
      const entry = includeEntry && stat !== undefined ? { entry: entryMessage(entryOf(`${path}/${name}`, stat)) } : {};
      yield { name, type, ...entry };
    }
  }

  return {
    Stat: unary(async (message, files) => {
      const { path } = shape.parsed(pathShape, message, refusalOf);
      return { entry: entryMessage(await files.stat(path)) };
    }),
    MakeDir: unary(async (message, files) => {
      const { path } = shape.parsed(pathShape, message, refusalOf);
      if (!(await files.makeDirectory(path)))
        throw new E2bFailure("already_exists", `directory already exists: ${path}`);
      return { entry: entryMessage(await files.stat(path)) };
    }),
    Move: unary(async (message, files) => {
      const { source, destination } = shape.parsed(moveShape, message, refusalOf);
      await files.move(source, destination);
      return { entry: entryMessage(await files.stat(destination)) };
    }),
    ListDir: unary(async (message, files) => {
      const { path, depth } = shape.parsed(listShape, message, refusalOf);
      return { entries: (await files.list(path, depth || 1)).map(entryMessage) };
    }),
    Remove: unary(async (message, files) => {
      await files.remove(shape.parsed(pathShape, message, refusalOf).path);
      return {};
    }),
    WatchDir: {
      kind: "server",
      async *run(message, { headers, signal }) {
        userIn(headers);
        const { changes } = await watched(message, signal);
        yield { start: {} };
        for await (const filesystem of changes) yield { filesystem };
      },
    },
    CreateWatcher: {
      kind: "unary",
      async run(message, { headers }) {
        userIn(headers);
        const { watch, changes } = await watched(message);
        return { watcherId: watchers.add(watch, changes) };
      },
    },
    GetWatcherEvents: {
      kind: "unary",
      async run(message) {
        return { events: watchers.find(shape.parsed(watcherShape, message, refusalOf).watcherId).take() };
      },
    },
    RemoveWatcher: {
      kind: "unary",
      async run(message) {
        watchers.remove(shape.parsed(watcherShape, message, refusalOf).watcherId);
        return {};
      },
    },
  };
}

/** A name that is moved is told as renamed where it was, and as made where it is. */
const EVENTS = {
  made: "EVENT_TYPE_CREATE",
  "moved-here": "EVENT_TYPE_CREATE",
  "moved-away": "EVENT_TYPE_RENAME",
  removed: "EVENT_TYPE_REMOVE",
  written: "EVENT_TYPE_WRITE",
  attributes: "EVENT_TYPE_CHMOD",
} as const satisfies Record<FileChangeCause, string>;

const TYPES = { file: "FILE_TYPE_FILE", directory: "FILE_TYPE_DIRECTORY", symlink: "FILE_TYPE_SYMLINK" } as const;

function entryMessage({ kind, path, size, mode, owner, group, modifiedAt, target, metadata }: Entry): object {
  return {
    name: path.slice(path.lastIndexOf("/") + 1) || "/",
    type: TYPES[kind],
    path,
    size: String(size),
    mode,
    permissions: permissionsOf(kind, mode),
    owner,
    group,
    modifiedTime: modifiedAt.toISOString(),
    ...(target === "" ? {} : { symlinkTarget: target }),
    metadata,
  };
}

/** "drwxr-xr-x" */
function permissionsOf(kind: Entry["kind"], mode: number): string {
  const letter = { file: "-", directory: "d", symlink: "L" }[kind];
  const bits = [...(mode & 0o777).toString(2).padStart(9, "0")];
  return letter + bits.map((bit, at) => (bit === "1" ? "rwx"[at % 3] : "-")).join("");
}
