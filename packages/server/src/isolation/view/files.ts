import type { Rule } from "@agentfense/permission";
import { SandboxError } from "../backend/errors.ts";
import type { Cancellable } from "../exec/api.ts";
import { throwIfCancelled } from "../exec/execute.ts";
import type { ViewChange, ViewFiles, ViewStat } from "./api.ts";
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
  /** Where the workspace is on the host; throws while the sandbox does not run. */
  readonly mount: () => Pick<MountedView, "mountPoint" | "outside">;
  readonly target: string;
  readonly kernelWatch: KernelWatch;
  /** Those in force. */
  readonly rules: () => readonly Rule[];
}

/** The files of a mounted workspace, through the mount: the engine decides, as it does for processes inside. */
export class MountedFiles implements ViewFiles {
  readonly #thread: ViewThread;
  readonly #view: () => MountedView;
  readonly #target: string;
  /** Descriptors that readers and writers have open. */
  readonly #open = new Set<number>();
  readonly #watches: ViewWatches;

  constructor({ thread, mount, target, kernelWatch, rules }: MountedFilesOptions) {
    this.#thread = thread;
    this.#target = target;
    const view = (): MountedView => {
      const { mountPoint, outside } = mount();
      return { mountPoint, outside, target };
    };
    this.#view = view;
    this.#watches = new ViewWatches({ thread, kernel: kernelWatch, view, rules });
  }

  async read(path: string, options: Cancellable = {}): Promise<AsyncIterable<Buffer>> {
    throwIfCancelled(options.signal);
    const fd = await this.#ask<number>("openToRead", path, {});
    this.#open.add(fd);
    return this.#content(path, fd, options.signal);
  }

  async write(
    path: string,
    content: AsyncIterable<Uint8Array>,
    options: Cancellable & { readonly mode?: number; readonly append?: boolean } = {},
  ): Promise<ViewStat> {
    const { signal, mode, append = false } = options;
    if (mode !== undefined && !(Number.isInteger(mode) && mode >= 0 && mode <= 0o777)) {
      throw new SandboxError("INVALID_ARGUMENT", "a mode is a number from 0 to 0777");
    }
    throwIfCancelled(signal);
    const fd = await this.#ask<number>("openToWrite", path, { append, mode });
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

  async list(path: string, options: Cancellable & { readonly recursive?: boolean } = {}): Promise<readonly ViewStat[]> {
    throwIfCancelled(options.signal);
    try {
      return await this.#ask("list", path, { recursive: options.recursive ?? false });
    } catch (error) {
      if (!(error instanceof SandboxError) || error.errno !== "E2BIG") throw error;
      throw new SandboxError("RESOURCES_EXHAUSTED", "there are too many entries to list at once", {
        hint: "list a directory further down, or without recursion",
      });
    }
  }

  async stat(path: string): Promise<ViewStat> {
    return await this.#ask("stat", path, {});
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

  async watch(
    path: string,
    options: Cancellable & { readonly recursive?: boolean } = {},
  ): Promise<AsyncIterable<ViewChange>> {
    return await this.#told(path, this.#watches.watch(parseViewPath(path, this.#target), options));
  }

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

  /** Asks the thread for something at a path; a refusal is an error, so that an answer is never an errno. */
  async #ask<Answer>(name: OperationName, path: string, more: object): Promise<Answer> {
    const names = parseViewPath(path, this.#target);
    const input = { ...this.#view(), names, ...more } as never;
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

/** A runtime without mounts has no files to show. */
export function noFiles(check: () => void): ViewFiles {
  const refuse = async (path: string): Promise<never> => {
    check();
    throw fileFailed(path, "ENOTSUP");
  };
  return {
    read: refuse,
    write: refuse,
    list: refuse,
    stat: refuse,
    makeDirectory: refuse,
    remove: refuse,
    move: refuse,
    watch: refuse,
    changedOutside: () => {},
  };
}
