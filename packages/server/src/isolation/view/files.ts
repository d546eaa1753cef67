import type { Rule } from "@agentfense/permission";
import { IsolationError, throwIfCancelled } from "../backend/isolation-error.ts";
import type { Cancellable } from "../exec/api.ts";
import type { NewAttributes, ViewChange, ViewStat } from "./api.ts";
import type { KernelWatch } from "./kernel-watch.ts";
import type { OperationName } from "./operations.ts";
import { fileFailed, parseViewPath } from "./path.ts";
import type { MountedView } from "./resolution.ts";
import { ViewFailure, type ViewThread } from "./thread.ts";
import { ViewWatches } from "./watches.ts";

/** What one message carries: enough to keep the copying cheap, little enough to wait with. */
const CHUNK = 256 * 1024;

export interface MountedFilesOptions {
  readonly thread: ViewThread;
  /** Where the workspace is on the host; throws while the sandbox does not run. Undefined of a runtime without mounts. */
  readonly mount: () => Pick<MountedView, "mountPoint" | "outside"> | undefined;
  readonly target: string;
  readonly kernelWatch: KernelWatch;
  /** Those in force. */
  readonly rules: () => readonly Rule[];
}

/**
 * The files of a mounted workspace, through the mount: the mount thread decides, as it does for processes inside. Paths are relative to
 * it, with or without a leading slash or `/workspace`. Symbolic links are followed as inside, and never out of the workspace. A
 * refusal is an IsolationError FILE_FAILED whose `errno` is what a process inside gets. All need a running sandbox.
 */
export class MountedFiles {
  readonly #options: MountedFilesOptions;
  readonly #thread: ViewThread;
  readonly #target: string;
  /** Descriptors that readers and writers have open. */
  readonly #open = new Set<number>();
  readonly #watches: ViewWatches;

  constructor(options: MountedFilesOptions) {
    const { thread, target, kernelWatch, rules } = options;
    this.#options = options;
    this.#thread = thread;
    this.#target = target;
    this.#watches = new ViewWatches({ thread, kernel: kernelWatch, view: () => this.#view(target), rules });
  }

  /** Regular files only. The file is open before the promise resolves. */
  async read(path: string, options: Cancellable = {}): Promise<AsyncIterable<Buffer>> {
    throwIfCancelled(options.signal);
    const fd = await this.#ask<number>("openToRead", path, {});
    this.#open.add(fd);
    return this.#content(path, fd, options.signal);
  }

  /** Replaces the content, or appends. Directories on the way must exist. */
  async write(
    path: string,
    content: AsyncIterable<Uint8Array>,
    options: Cancellable & {
      readonly mode?: number;
      readonly append?: boolean;
      readonly attributes?: NewAttributes | undefined;
    } = {},
  ): Promise<ViewStat> {
    const { signal, mode, append = false, attributes } = options;
    if (mode !== undefined && !(Number.isInteger(mode) && mode >= 0 && mode <= 0o777)) {
      throw new IsolationError("INVALID_ARGUMENT", "a mode is a number from 0 to 0777");
    }
    throwIfCancelled(signal);
    const fd = await this.#ask<number>("openToWrite", path, { append, mode, attributes });
    this.#open.add(fd);
    try {
      for await (const piece of content) {
        for (let start = 0; start < piece.length; start += CHUNK) {
          throwIfCancelled(signal);
          const data = piece.subarray(start, start + CHUNK);
          await this.#told(path, this.#thread.request("write", { fd, data }));
        }
      }
      throwIfCancelled(signal);
    } finally {
      await this.#close(fd);
    }
    // A link at the end was followed: what was written is what it leads to.
    return await this.stat(path);
  }

  /** In the order of their paths; all below with `recursive`. Links are not followed below the path itself. */
  async list(
    path: string,
    options: Cancellable & { readonly recursive?: boolean; readonly attributes?: boolean } = {},
  ): Promise<readonly ViewStat[]> {
    throwIfCancelled(options.signal);
    const { recursive = false, attributes = false } = options;
    try {
      return await this.#ask("list", path, { recursive, attributes });
    } catch (error) {
      if (!(error instanceof IsolationError) || error.errno !== "E2BIG") throw error;
      throw new IsolationError("RESOURCES_EXHAUSTED", "there are too many entries to list at once", {
        hint: "list a directory further down, or without recursion",
      });
    }
  }

  /** Does not follow a link at the end. */
  async stat(path: string, { attributes = false }: { readonly attributes?: boolean } = {}): Promise<ViewStat> {
    return await this.#ask("stat", path, { attributes });
  }

  async makeDirectory(path: string, options: { readonly recursive?: boolean } = {}): Promise<ViewStat> {
    return await this.#ask("makeDirectory", path, { recursive: options.recursive ?? false });
  }

  async remove(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    await this.#ask("remove", path, { recursive: options.recursive ?? false });
  }

  async move(from: string, to: string): Promise<ViewStat> {
    return await this.#ask("move", from, { to: parseViewPath(to, this.#target) });
  }

  /**
   * What happens in a directory (with `recursive` all the way down), or to a file; resolves when the watch is on. A link at
   * the end is followed. A file is watched by its name, whatever level it has that shows it: it may go and come again. Ends
   * when the sandbox stops, and, after a `rename` of "", when the directory (the file's, for a file) is gone, moved or hidden
   * by new rules.
   */
  async watch(
    path: string,
    options: Cancellable & { readonly recursive?: boolean } = {},
  ): Promise<AsyncIterable<ViewChange>> {
    this.#view(path);
    return await this.#told(path, this.#watches.watch(parseViewPath(path, this.#target), options));
  }

  /** Others changed what these paths ("/src/a.ts") show, not through the mount: tells the watches of those that can be seen. */
  changedOutside(paths: readonly string[]): void {
    this.#watches.changedOutside(paths);
  }

  /** New rules are in force. */
  rulesChanged(): void {
    this.#watches.rulesChanged();
  }

  /** Before the workspace is unmounted: nobody's open file or watch holds it up. */
  async close(): Promise<void> {
    this.#watches.close();
    await Promise.all([...this.#open].map((fd) => this.#close(fd)));
  }

  #view(path: string): MountedView {
    const mount = this.#options.mount();
    if (mount === undefined) throw fileFailed(path, "ENOTSUP");
    return { mountPoint: mount.mountPoint, outside: mount.outside, target: this.#target };
  }

  /** Asks the thread for something at a path; a refusal is an error, so that an answer is never an errno. */
  async #ask<Answer>(name: OperationName, path: string, more: object): Promise<Answer> {
    const names = parseViewPath(path, this.#target);
    const input = { ...this.#view(path), names, ...more } as never;
    return (await this.#told(path, this.#thread.request(name, input))) as Answer;
  }

  async *#content(path: string, fd: number, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
    try {
      for (let offset = 0; ; ) {
        throwIfCancelled(signal);
        if (!this.#open.has(fd)) throw fileFailed(path, "ENOTCONN");
        const chunk = await this.#told(path, this.#thread.request("read", { fd, offset, length: CHUNK }));
        if (typeof chunk === "number" || chunk.length === 0) return;
        offset += chunk.length;
        yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
      }
    } finally {
      await this.#close(fd);
    }
  }

  async #close(fd: number): Promise<void> {
    if (!this.#open.delete(fd)) return;
    await this.#thread.request("close", { fd }).catch(() => {}); // nothing more can be done about it
  }

  async #told<T>(path: string, request: Promise<T>): Promise<T> {
    try {
      return await request;
    } catch (error) {
      if (error instanceof ViewFailure) throw fileFailed(path, error.errno);
      throw error;
    }
  }
}
