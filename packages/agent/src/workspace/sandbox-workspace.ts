import { randomUUID } from "node:crypto";
import { FileNotFoundError, type FileStat, PermissionDeniedError, type Sandbox, SandboxError } from "@agentfense/sdk";
import { PathTraversalError, WorkspaceError, type WorkspaceErrorCode } from "../errors.ts";
import { MAX_FILE_BYTES, MAX_LIST_ENTRIES } from "./agent-workspace.ts";
import { namesOf, shown } from "./path.ts";
import type { Workspace, WorkspaceEntry } from "./workspace.ts";
import { CODE_BY_ERRNO, failure } from "./workspace-failure.ts";

export interface SandboxWorkspaceOptions {
  /** The largest file that is read or written; default 16 MiB. */
  readonly maxFileBytes?: number | undefined;
  /** The longest listing; default 10,000 entries. */
  readonly maxListEntries?: number | undefined;
}

/** The files of a sandbox as a process inside sees them: what the rules hide is not there. */
export class SandboxWorkspace implements Workspace {
  readonly #files: Sandbox["files"];
  readonly #maxFileBytes: number;
  readonly #maxListEntries: number;

  constructor(sandbox: Pick<Sandbox, "files">, options: SandboxWorkspaceOptions = {}) {
    this.#files = sandbox.files;
    this.#maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES;
    this.#maxListEntries = options.maxListEntries ?? MAX_LIST_ENTRIES;
  }

  async readFile(path: string): Promise<string> {
    return (await this.#read(path)).toString("utf8");
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    return new Uint8Array(await this.#read(path));
  }

  /**
   * Under another name first. Where a link is, or where the rules let nothing else be written beside the file, it is
   * written in place, and a reader may see a part of it.
   */
  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    await this.#at(path, async (names) => {
      if (bytes.byteLength > this.#maxFileBytes) {
        throw failure("TOO_LARGE", path, `would be larger than ${this.#maxFileBytes} bytes`);
      }
      if (names.length === 0) throw failure("WRONG_KIND", path, "is no file, and is not replaced by one");
      const old = await this.#statIfThere(names.join("/"));
      if (old === undefined) await this.#makeParents(names);
      const isPlain = old === undefined || old.isFile();
      // A FIFO shows as an empty file, and says what it is when it is read.
      if (old?.isFile() && old.size === 0) await this.#files.readFile(names.join("/"));
      if (!isPlain || !(await this.#replace(names, bytes, old?.mode))) {
        await this.#files.writeFile(names.join("/"), bytes);
      }
    });
  }

  async list(path = "", options: { readonly recursive?: boolean | undefined } = {}): Promise<WorkspaceEntry[]> {
    const { recursive } = options;
    return await this.#at(path, async (names) => {
      const found = await this.#files.readdir(names.join("/"), { withFileTypes: true, recursive });
      if (found.length > this.#maxListEntries) {
        throw failure("TOO_LARGE", path, `has more than ${this.#maxListEntries} entries; list a part of it`);
      }
      return found.map(entryOf).sort((one, other) => (one.path < other.path ? -1 : 1));
    });
  }

  async delete(path: string, options: { readonly recursive?: boolean | undefined } = {}): Promise<void> {
    const { recursive } = options;
    await this.#at(path, async (names) => {
      if (names.length === 0) throw failure("NOT_PERMITTED", path, "itself is not deleted");
      await this.#files.rm(names.join("/"), { recursive });
    });
  }

  async stat(path: string): Promise<WorkspaceEntry> {
    return await this.#at(path, async (names) => entryOf(await this.#files.stat(names.join("/"))));
  }

  async #read(path: string): Promise<Buffer> {
    return await this.#at(path, async (names) => {
      if (names.length === 0) throw failure("WRONG_KIND", path, "is no file");
      const pieces: Uint8Array[] = [];
      let size = 0;
      for await (const piece of this.#files.readStream(names.join("/"))) {
        size += piece.byteLength;
        if (size > this.#maxFileBytes) {
          throw failure("TOO_LARGE", path, `is larger than ${this.#maxFileBytes} bytes`);
        }
        pieces.push(piece);
      }
      return Buffer.concat(pieces, size);
    });
  }

  async #statIfThere(path: string): Promise<FileStat | undefined> {
    try {
      return await this.#files.stat(path);
    } catch (error) {
      if (error instanceof FileNotFoundError) return undefined;
      throw error;
    }
  }

  async #makeParents(names: readonly string[]): Promise<void> {
    if (names.length > 1) await this.#files.mkdir(names.slice(0, -1).join("/"), { recursive: true });
  }

  /** False when the rules do not let it be done this way. */
  async #replace(names: readonly string[], bytes: Uint8Array, mode: number | undefined): Promise<boolean> {
    const temporary = [...names.slice(0, -1), `.agentfense-${randomUUID()}.tmp`].join("/");
    try {
      await this.#files.writeFile(temporary, bytes, mode === undefined ? {} : { mode: mode & 0o777 });
      await this.#files.rename(temporary, names.join("/"));
      return true;
    } catch (error) {
      await this.#files.rm(temporary, { force: true }).catch(() => {});
      if (error instanceof PermissionDeniedError || error instanceof FileNotFoundError) return false;
      throw error;
    }
  }

  async #at<T>(path: string, work: (names: readonly string[]) => Promise<T>): Promise<T> {
    const names = namesOf(path);
    try {
      return await work(names);
    } catch (error) {
      throw inOurWords(error, path);
    }
  }
}

/** What a sandbox's files say in other words than the system. */
const CODES: Readonly<Record<string, WorkspaceErrorCode>> = {
  ...CODE_BY_ERRNO,
  EINVAL: "WRONG_KIND",
  EEXIST: "WRONG_KIND",
  E2BIG: "TOO_LARGE",
};

/** That the sandbox itself is gone, or cannot be reached, is no word about a file: such errors are the SDK's. */
function inOurWords(error: unknown, path: string): unknown {
  if (!(error instanceof SandboxError)) return error;
  const { errno } = error.details;
  if (errno === "EXDEV") {
    return new PathTraversalError(`${shown(path)} leads through a link out of the workspace`, { cause: error });
  }
  if (error instanceof FileNotFoundError) return told("NOT_FOUND", path, error);
  if (error instanceof PermissionDeniedError) return told("NOT_PERMITTED", path, error);
  if (error.code === "RESOURCES_EXHAUSTED" || error.code === "LIMIT_EXCEEDED") return told("TOO_LARGE", path, error);
  return errno === undefined ? error : told(CODES[errno] ?? "IO", path, error);
}

function told(code: WorkspaceErrorCode, path: string, cause: SandboxError): WorkspaceError {
  return new WorkspaceError(code, failure(code, path).message, { cause });
}

function entryOf({ path, kind, size, modifiedAt }: FileStat): WorkspaceEntry {
  return { path: path.replace(/^\//, ""), kind, size: kind === "file" ? size : 0, modifiedAt };
}
