import { syscalls } from "@agentfense/fuse";
import { compileRules, LEVEL, type Policy, type Rule } from "@agentfense/permission";
import { IsolationError, throwIfCancelled } from "../backend/isolation-error.ts";
import type { Cancellable } from "../exec/api.ts";
import { utf8Of } from "../filesystem/names.ts";
import { Bell, Queue } from "../waiting.ts";
import type { ViewChange } from "./api.ts";
import type { KernelEvent, KernelWatch, MarkOwner } from "./kernel-watch.ts";
import type { Marked } from "./marking.ts";
import { fileFailed, viewPath } from "./path.ts";
import type { MountedView } from "./resolution.ts";
import { ViewFailure, type ViewThread } from "./thread.ts";

const { Inotify } = syscalls;

const CAME = Inotify.CREATE | Inotify.MOVED_TO;
const WENT = Inotify.DELETE | Inotify.MOVED_FROM;

const MOST_WATCHES = 64;
/** How many directories all watches of a sandbox have: each keeps an inode in the kernel's memory and a node in the mount thread's. */
const MOST_DIRECTORIES = 10_000;
/** More than these, and it is less work to look at the whole tree. */
const MOST_STALE = 256;

/** What no longer leads anywhere. */
const NOWHERE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "EACCES", "ELOOP", "EXDEV"]);

export interface ViewWatchesOptions {
  readonly thread: ViewThread;
  readonly kernel: KernelWatch;
  readonly view: () => MountedView;
  /** Those in force. */
  readonly rules: () => readonly Rule[];
  readonly mostDirectories?: number;
}

/**
 * The watches on one mount. The kernel reports what goes through the mount, whoever does it; what others change below it, in
 * the codebase or in the delta, must be told with `changedOutside`. Whatever the source, no path that the rules hide is ever
 * told.
 */
export class ViewWatches implements MarkOwner {
  readonly #options: ViewWatchesOptions;
  readonly #mostDirectories: number;
  readonly #watches = new Set<Watch>();
  /** Marks are set and removed one after the other, so that none is removed that has just been asked for again. */
  readonly #turns = new Queue();
  #policy: { readonly rules: readonly Rule[]; readonly policy: Policy } | undefined;

  constructor(options: ViewWatchesOptions) {
    this.#options = options;
    this.#mostDirectories = options.mostDirectories ?? MOST_DIRECTORIES;
  }

  /** Rejects with a ViewFailure when the path leads nowhere. */
  async watch(
    names: readonly string[],
    { recursive = false, signal }: Cancellable & { readonly recursive?: boolean },
  ): Promise<AsyncIterable<ViewChange>> {
    throwIfCancelled(signal);
    if (this.#watches.size >= MOST_WATCHES) throw tooMuch(`a sandbox has at most ${MOST_WATCHES} watches`);
    const onAbort = (): void => watch.end();
    const watch: Watch = new Watch({
      recursive,
      onEnd: () => {
        signal?.removeEventListener("abort", onAbort);
        this.#watches.delete(watch);
        void this.#turns.run(() => this.#release([...watch.places.keys()])).catch(() => {});
      },
    });
    this.#watches.add(watch);
    signal?.addEventListener("abort", onAbort);
    try {
      await this.#turns.run(() => this.#mark(watch, "", { names, report: false }));
    } catch (error) {
      watch.end();
      throw error;
    }
    throwIfCancelled(signal);
    return watch.changes();
  }

  happened({ mark, mask, name }: KernelEvent): void {
    for (const watch of [...this.#watches]) {
      const path = watch.places.get(mark);
      if (path === undefined) continue;
      if (name === "") this.#happenedToDirectory(watch, path, { mark, mask });
      else this.#happenedToEntry(watch, path, { mask, name });
    }
  }

  overflowed(): void {
    for (const watch of this.#watches) {
      watch.lookAgain();
      this.#markAnew(watch, "");
    }
  }

  /** New rules are in force: directories may have come into sight, or gone. */
  rulesChanged(): void {
    this.overflowed();
  }

  /** Others changed what the mount shows at these paths ("/src/a.ts"), not through it. */
  changedOutside(paths: readonly string[]): void {
    for (const watch of this.#watches) {
      const decide = this.#rulesInForce();
      for (const path of paths) {
        const names = path.split("/").filter((name) => name !== "");
        this.#changedOutside(watch, names, decide);
      }
    }
  }

  /** Before the workspace is unmounted, which removes the marks. */
  close(): void {
    for (const watch of [...this.#watches]) {
      this.#options.kernel.forget(watch.places.keys());
      watch.places.clear();
      watch.end();
    }
  }

  #happenedToDirectory(watch: Watch, path: string, { mark, mask }: Pick<KernelEvent, "mark" | "mask">): void {
    if (mask & Inotify.IGNORED) watch.places.delete(mark);
    if (path !== "") return; // its own directory reports what happens to it
    if (mask & Inotify.UNMOUNT) watch.end();
    else if (mask & (Inotify.DELETE_SELF | Inotify.MOVE_SELF | Inotify.IGNORED)) watch.gone();
    else if (watch.only === undefined) watch.tell({ kind: "change", path: "" });
  }

  #happenedToEntry(watch: Watch, directory: string, { mask, name }: Pick<KernelEvent, "mask" | "name">): void {
    const text = utf8Of(name);
    if (text === undefined) return;
    if (watch.only !== undefined && text !== watch.only) return;
    const path = below(directory, text);
    // A file that was open before the rules hid it can still be written to.
    if (this.#rulesInForce()([...watch.top, ...path.split("/")]) === "hidden") return;
    const kind = mask & (CAME | WENT) ? "rename" : "change";
    watch.tell({ kind, path: watch.only === undefined ? path : "", ...causeOf(mask) });
    if (!watch.recursive || !(mask & Inotify.ISDIR) || kind === "change") return;
    this.#markAnew(watch, path);
  }

  #changedOutside(watch: Watch, names: readonly string[], decide: Decide): void {
    const { top, only, recursive } = watch;
    // The whole way to the top, or as much of it as there is.
    const common = top.findIndex((name, index) => names[index] !== name);
    if (common >= 0 && common < names.length) return; // elsewhere
    if (names.length <= top.length) {
      watch.lookAgain();
      this.#markAnew(watch, "");
      return;
    }
    if (decide(names) !== "visible") return;
    const rest = names.slice(top.length);
    if (only !== undefined) {
      if (rest[0] === only) watch.tell({ kind: "rename", path: "" });
      return;
    }
    // A directory that only leads to something visible comes and goes with it.
    for (let depth = 1; depth <= (recursive ? rest.length : 1); depth++) {
      const isIt = depth === rest.length;
      const path = rest.slice(0, depth).join("/");
      if (isIt || decide(names.slice(0, top.length + depth)) === "passage") watch.tell({ kind: "rename", path });
    }
    if (!recursive) return;
    const known = new Set(watch.places.values());
    const unknown = rest.findIndex((_, index) => !known.has(rest.slice(0, index + 1).join("/")));
    this.#markAnew(watch, rest.slice(0, unknown < 0 ? rest.length : unknown + 1).join("/"));
  }

  /** Soon, together with what else is to be marked by then. */
  #markAnew(watch: Watch, path: string): void {
    const isFirst = watch.stale.size === 0;
    if (watch.stale.size >= MOST_STALE) {
      watch.stale.clear();
      watch.stale.add("");
    } else watch.stale.add(path);
    if (!isFirst) return;
    this.#turns
      .run(async () => {
        while (watch.stale.size > 0 && !watch.ended) {
          const paths = watch.stale.has("") ? [""] : [...watch.stale];
          watch.stale.clear();
          for (const each of paths) if (!watch.ended) await this.#refresh(watch, each);
        }
      })
      .catch((error: unknown) => {
        watch.fail(error instanceof ViewFailure ? fileFailed(viewPath(watch.top), error.errno) : error);
      });
  }

  async #refresh(watch: Watch, path: string): Promise<void> {
    try {
      await this.#mark(watch, path, { names: [...watch.top, ...namesOf(path)], report: true });
    } catch (error) {
      if (!(error instanceof ViewFailure) || !NOWHERE.has(error.errno)) throw error;
      if (path === "") watch.gone();
      else await this.#release(take(watch, path));
    }
  }

  /** Marks a directory of a watch, and all below if it is recursive, instead of what was marked there before. */
  async #mark(
    watch: Watch,
    path: string,
    request: { readonly names: readonly string[]; readonly report: boolean },
  ): Promise<void> {
    const { thread, kernel, view } = this.#options;
    const isFirst = watch.topMark === undefined;
    const known = new Set(watch.places.keys());
    const room = this.#mostDirectories - this.#marked() + within(watch, path).length;
    const work = (inotify: number): Promise<Marked> =>
      thread.request("mark", {
        ...view(),
        names: request.names,
        inotify,
        resolve: isFirst,
        recursive: watch.recursive,
        room,
        report: request.report ? MOST_QUEUED : 0,
      }) as Promise<Marked>;
    let before: readonly number[] = [];
    let isFull = false;
    await kernel.mark(this, work, (marked) => {
      before = take(watch, path);
      if (isFirst) Object.assign(watch, { top: marked.top, only: marked.only });
      for (const each of marked.marks) watch.places.set(each.mark, joined(path, each.path));
      isFull = marked.isFull || room < 1;
      if (request.report) tellFound(watch, path, marked, known);
    });
    await this.#release(before);
    if (isFull) throw tooMuch("there are too many directories to watch");
  }

  /** Removes marks that no watch has any more. */
  async #release(marks: readonly number[]): Promise<void> {
    const unused = marks.filter((mark) => ![...this.#watches].some(({ places }) => places.has(mark)));
    if (unused.length === 0) return;
    const { kernel, thread } = this.#options;
    kernel.forget(unused);
    await thread.request("unmark", { inotify: kernel.descriptor, marks: unused });
  }

  #marked(): number {
    let count = 0;
    for (const { places } of this.#watches) count += places.size;
    return count;
  }

  #rulesInForce(): Decide {
    const rules = this.#options.rules();
    if (this.#policy?.rules !== rules) this.#policy = { rules, policy: compileRules(rules) };
    const { policy } = this.#policy;
    return (names) => {
      const { level, mayShowBelow } = policy.decide(`/${names.join("/")}`);
      if (level !== LEVEL.none) return "visible";
      return mayShowBelow ? "passage" : "hidden";
    };
  }
}

const CAUSES = [
  [Inotify.CREATE, "made"],
  [Inotify.DELETE, "removed"],
  [Inotify.MOVED_FROM, "moved-away"],
  [Inotify.MOVED_TO, "moved-here"],
  [Inotify.MODIFY, "written"],
  [Inotify.ATTRIB, "attributes"],
] as const;

function causeOf(mask: number): Pick<ViewChange, "cause"> {
  const cause = CAUSES.find(([bit]) => (mask & bit) !== 0)?.[1];
  return cause === undefined ? {} : { cause };
}

/** `passage`: seen only if something visible is below. */
type Decide = (names: readonly string[]) => "visible" | "passage" | "hidden";

/** What stands in directories that were not marked before may have come there unnoticed. */
function tellFound(watch: Watch, path: string, { marks, isCut }: Marked, known: ReadonlySet<number>): void {
  const isOther = path === "" && !known.has(marks[0]!.mark);
  if (isCut || isOther) watch.lookAgain();
  for (const each of marks) {
    if (known.has(each.mark)) continue;
    for (const name of each.entries) watch.tell({ kind: "rename", path: below(joined(path, each.path), name) });
  }
}

/** The marks at and below a path of a watch. */
function within(watch: Watch, path: string): number[] {
  const isWithin = (place: string): boolean => path === "" || place === path || place.startsWith(`${path}/`);
  return [...watch.places].filter(([, place]) => isWithin(place)).map(([mark]) => mark);
}

/** Takes them out of it. */
function take(watch: Watch, path: string): number[] {
  const taken = within(watch, path);
  for (const mark of taken) watch.places.delete(mark);
  return taken;
}

function below(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}

function joined(directory: string, path: string): string {
  return path === "" ? directory : below(directory, path);
}

function namesOf(path: string): string[] {
  return path === "" ? [] : path.split("/");
}

function tooMuch(message: string): IsolationError {
  return new IsolationError("RESOURCES_EXHAUSTED", message, {
    hint: "watch a directory further down, or without recursion",
  });
}

/** Changes that wait for a slow reader. */
const MOST_QUEUED = 4096;

/** More happened than can be told: what is watched is to be looked at anew. */
const LOOK_AGAIN: ViewChange = { kind: "change", path: "" };
/** What is watched is not there any more. */
const GONE: ViewChange = { kind: "rename", path: "" };

/** One watch: what it is on, and what happened there that its reader has not seen yet. */
export class Watch {
  /** The marked directories, relative to the top. */
  readonly places = new Map<number, string>();
  /** Directories, relative to the top, that must be marked anew with all below them. */
  readonly stale = new Set<string>();
  /** The directory at the top. */
  top: readonly string[] = [];
  /** The one entry of it that is watched, if it is not all of them. */
  only: string | undefined;
  readonly #recursive: boolean;
  readonly #onEnd: () => void;
  #queue: ViewChange[] = [];
  readonly #news = new Bell();
  #ended = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: { readonly recursive: boolean; readonly onEnd: () => void }) {
    this.#recursive = options.recursive;
    this.#onEnd = options.onEnd;
  }

  /** All below the top; there is nothing below a file. */
  get recursive(): boolean {
    return this.#recursive && this.only === undefined;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get topMark(): number | undefined {
    for (const [mark, path] of this.places) if (path === "") return mark;
    return undefined;
  }

  tell(change: ViewChange): void {
    if (this.#ended) return;
    const last = this.#queue.at(-1);
    if (last?.kind === change.kind && last.path === change.path && last.cause === change.cause) return;
    if (this.#queue.length >= MOST_QUEUED) this.#queue = [LOOK_AGAIN];
    else this.#queue.push(change);
    this.#news.ring();
  }

  lookAgain(): void {
    this.tell(LOOK_AGAIN);
  }

  /** What is watched was deleted, moved away or hidden. */
  gone(): void {
    this.tell(GONE);
    this.end();
  }

  fail(error: unknown): void {
    if (this.#ended) return;
    this.#failure = { error };
    this.end();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
    this.#news.ring();
  }

  /** Ends with the watch, after what is left to tell. Leaving the loop ends the watch. */
  async *changes(): AsyncGenerator<ViewChange> {
    try {
      while (true) {
        for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) yield next;
        if (this.#failure !== undefined) throw this.#failure.error;
        if (this.#ended) return;
        await this.#news.wait();
      }
    } finally {
      this.end();
    }
  }
}
