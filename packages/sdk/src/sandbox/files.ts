import { Buffer } from "node:buffer";
import { namesIn } from "@agentfense/permission";
import type { SandboxClient } from "../client/client.ts";
import { FileNotFoundError, InvalidConfigurationError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { FileChange, FileInfo } from "../model/records.ts";
import type { AttributeOptions, Content, RecursiveOptions, WithAttributes } from "../model/requests.ts";
import { workspacePath } from "./parts.ts";

export type TextEncodingName = "utf8" | "utf-8" | "utf16le" | "latin1" | "ascii" | "base64" | "base64url" | "hex";

/** What is at a path, with the questions of node:fs. */
export interface FileStat extends FileInfo {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

export interface ReadFileOptions extends CallOptions {
  readonly encoding?: TextEncodingName | undefined;
}

export interface WriteOptions extends CallOptions, AttributeOptions {
  /** Permission bits of a new file; default 0o644. */
  readonly mode?: number | undefined;
  /** "w" replaces what is there, "a" adds to it; default "w". */
  readonly flag?: "w" | "a" | undefined;
}

export interface ReadDirectoryOptions extends RecursiveOptions, WithAttributes {
  readonly withFileTypes?: boolean | undefined;
}

export interface RemoveOptions extends RecursiveOptions {
  /** What is not there is no error. */
  readonly force?: boolean | undefined;
}

/**
 * The files of a running sandbox as a process inside sees them, by the names of node:fs/promises: the rules apply. Paths are
 * those of the workspace: "/workspace/src", "/src" and "src" are the same. Links are followed inside the workspace only.
 */
export class SandboxFiles {
  readonly #client: SandboxClient;
  readonly #sandboxId: string;

  constructor(client: SandboxClient, sandboxId: string) {
    this.#client = client;
    this.#sandboxId = sandboxId;
  }

  readFile(path: string, options?: ReadFileOptions & { readonly encoding?: undefined }): Promise<Uint8Array>;
  readFile(
    path: string,
    options: TextEncodingName | (ReadFileOptions & { readonly encoding: TextEncodingName }),
  ): Promise<string>;
  readFile(path: string, options?: TextEncodingName | ReadFileOptions): Promise<string | Uint8Array>;
  /** All of a file: its bytes, or with an encoding its text. */
  async readFile(path: string, options: TextEncodingName | ReadFileOptions = {}): Promise<string | Uint8Array> {
    const { encoding, signal } = typeof options === "string" ? { encoding: options } : options;
    const bytes = await this.#client.readFileBytes(this.#sandboxId, workspacePath(path), { signal });
    if (encoding === undefined) return bytes;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);
  }

  /** A file in pieces. Errors show with the first read. */
  readStream(path: string, options: CallOptions = {}): ReadableStream<Uint8Array> {
    return this.#client.readFile(this.#sandboxId, workspacePath(path), options);
  }

  async writeFile(path: string, content: Content, options: WriteOptions = {}): Promise<void> {
    const { flag = "w", ...more } = options;
    if (flag !== "w" && flag !== "a") {
      throw new InvalidConfigurationError(`the flag is "w" or "a", not ${JSON.stringify(flag)}`, {
        code: "INVALID_ARGUMENT",
      });
    }
    await this.#client.writeFile(this.#sandboxId, workspacePath(path), content, { ...more, append: flag === "a" });
  }

  async appendFile(path: string, content: Content, options: Pick<WriteOptions, "mode" | "signal"> = {}): Promise<void> {
    await this.writeFile(path, content, { ...options, flag: "a" });
  }

  readdir(
    path: string,
    options?: ReadDirectoryOptions & { readonly withFileTypes?: false | undefined },
  ): Promise<string[]>;
  readdir(path: string, options: ReadDirectoryOptions & { readonly withFileTypes: true }): Promise<FileStat[]>;
  readdir(path: string, options?: ReadDirectoryOptions): Promise<string[] | FileStat[]>;
  /** What is in a directory: names, "a/b" when recursive; or with what is known of each. */
  async readdir(path: string, options: ReadDirectoryOptions = {}): Promise<string[] | FileStat[]> {
    const { withFileTypes = false, ...more } = options;
    const entries = await this.#client.listDirectory(this.#sandboxId, workspacePath(path), more);
    if (withFileTypes) return entries.map(fileStat);
    const depth = namesIn(workspacePath(path)).length;
    return entries.map((entry) => namesIn(entry.path).slice(depth).join("/"));
  }

  /** Tells about a symbolic link itself, and not about what it leads to. */
  async stat(path: string, options: CallOptions & WithAttributes = {}): Promise<FileStat> {
    return fileStat(await this.#client.statFile(this.#sandboxId, workspacePath(path), options));
  }

  async mkdir(path: string, options: RecursiveOptions = {}): Promise<void> {
    await this.#client.makeDirectory(this.#sandboxId, workspacePath(path), options);
  }

  async rm(path: string, options: RemoveOptions = {}): Promise<void> {
    const { force = false, recursive, signal } = options;
    try {
      await this.#client.removeFile(this.#sandboxId, workspacePath(path), { recursive, signal });
    } catch (error) {
      if (!force || !(error instanceof FileNotFoundError)) throw error;
    }
  }

  async rename(from: string, to: string, options: CallOptions = {}): Promise<void> {
    await this.#client.moveFile(this.#sandboxId, workspacePath(from), workspacePath(to), options);
  }

  /** What changes at a path. It begins now (see `ready`), and ends with the loop, the signal or the sandbox. */
  watch(path: string, options: RecursiveOptions = {}): FileWatch {
    return new FileWatch(
      (signal) => this.#client.watchFiles(this.#sandboxId, workspacePath(path), { ...options, signal }),
      options,
    );
  }
}

function fileStat(info: FileInfo): FileStat {
  return {
    ...info,
    path: `/${namesIn(info.path).join("/")}`,
    isFile: () => info.kind === "file",
    isDirectory: () => info.kind === "directory",
    isSymbolicLink: () => info.kind === "symlink",
  };
}

/** Changes of files as they happen. What happens before the loop begins is not lost. */
export class FileWatch implements AsyncIterable<FileChange>, AsyncDisposable {
  /** Resolves when every change from then on is seen. */
  readonly ready: Promise<void>;
  readonly #stop = new AbortController();
  readonly #changes: Promise<AsyncGenerator<FileChange, void, undefined>>;

  constructor(
    open: (signal: AbortSignal) => Promise<AsyncGenerator<FileChange, void, undefined>>,
    { signal }: CallOptions,
  ) {
    this.#changes = open(signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]));
    this.ready = this.#changes.then(() => {});
    // Whoever waits for neither hears of a failure in the loop.
    this.ready.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FileChange, void, undefined> {
    try {
      yield* await this.#changes;
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    } finally {
      this.#stop.abort();
    }
  }

  /** Ends the watch, and the loop over it. */
  close(): void {
    this.#stop.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
