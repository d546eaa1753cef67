import { type BigIntStats, lstatSync } from "node:fs";
import { type FileHandle, rmdir, unlink } from "node:fs/promises";
import { AgentError } from "../errors.ts";
import { readContent, writeContent } from "./content.ts";
import { holdDirectory, inside } from "./descriptor.ts";
import { Gate } from "./gate.ts";
import { listEntries, workspaceEntry } from "./listing.ts";
import { namesOf } from "./path.ts";
import { emptyDirectory, removeTree } from "./removal.ts";
import { type ResolvedPath, type ResolveOptions, resolve } from "./resolve.ts";
import { checkSessionId, givenDirectory, sessionDirectory } from "./session-directory.ts";
import type { Workspace, WorkspaceEntry } from "./workspace.ts";
import { errnoOf, failure, workspaceFailure } from "./workspace-failure.ts";

export interface AgentWorkspaceOptions {
  /** Made if it is not there; default: one for the session below the directory for temporary files. */
  readonly directory?: string | undefined;
  /** The largest file that is read or written; default 16 MiB. */
  readonly maxFileBytes?: number | undefined;
  /** The longest listing; default 10,000 entries. */
  readonly maxListEntries?: number | undefined;
}

export const MAX_FILE_BYTES = 16 * 1024 * 1024;
export const MAX_LIST_ENTRIES = 10_000;
/** Each holds descriptors: a few, or one for each level of directories. */
const OPERATIONS_AT_ONCE = 8;

/**
 * A workspace that is a directory of this machine. Whatever is put in there, also while an operation goes on, none
 * reads, changes or removes anything outside.
 */
export class AgentWorkspace implements Workspace {
  readonly sessionId: string;
  /** Absolute, and no part of it is a link. */
  readonly directory: string;
  readonly #maxFileBytes: number;
  readonly #maxListEntries: number;
  readonly #identity: BigIntStats;
  readonly #gate = new Gate(OPERATIONS_AT_ONCE);

  constructor(sessionId: string, options: AgentWorkspaceOptions = {}) {
    if (process.platform !== "linux") {
      throw new AgentError("AgentWorkspace needs Linux: it holds directories by /proc/self/fd", {
        hint: "use SandboxWorkspace with a server elsewhere",
      });
    }
    checkSessionId(sessionId);
    this.sessionId = sessionId;
    this.#maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES;
    this.#maxListEntries = options.maxListEntries ?? MAX_LIST_ENTRIES;
    this.directory = options.directory === undefined ? sessionDirectory(sessionId) : givenDirectory(options.directory);
    this.#identity = lstatSync(this.directory, { bigint: true });
  }

  async readFile(path: string): Promise<string> {
    return (await this.#read(path)).toString("utf8");
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    return new Uint8Array(await this.#read(path));
  }

  /** Through a link that stays inside, what it leads to is written. Keeps the permissions of a file that is there. */
  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    await this.#at(
      path,
      { followLast: true, makeDirectories: true },
      async (resolved) => {
        await writeContent(resolved, path, bytes);
      },
      () => {
        if (bytes.byteLength > this.#maxFileBytes) {
          throw failure("TOO_LARGE", path, `would be larger than ${this.#maxFileBytes} bytes`);
        }
      },
    );
  }

  async list(path = "", options: { readonly recursive?: boolean | undefined } = {}): Promise<WorkspaceEntry[]> {
    const { recursive = false } = options;
    return await this.#at(path, { followLast: true }, async ({ entry }) => {
      if (entry === undefined) throw failure("NOT_FOUND", path);
      if (!entry.stats.isDirectory()) throw failure("WRONG_KIND", path, "is no directory");
      const shownPath = namesOf(path).join("/");
      return await listEntries(entry.handle, shownPath, { recursive, maxEntries: this.#maxListEntries });
    });
  }

  /** Deletes a link itself, and not what it leads to. A directory that is not empty wants `recursive`. */
  async delete(path: string, options: { readonly recursive?: boolean | undefined } = {}): Promise<void> {
    await this.#at(path, { followLast: false }, async ({ directory, name, entry }) => {
      if (name === undefined) throw failure("NOT_PERMITTED", path, "itself is not deleted");
      if (entry === undefined) throw failure("NOT_FOUND", path);
      if (!entry.stats.isDirectory()) await unlink(inside(directory, name));
      else if (options.recursive === true) await removeTree(directory, name);
      else await rmdir(inside(directory, name));
    });
  }

  /** Tells about a link itself, and not about what it leads to. */
  async stat(path: string): Promise<WorkspaceEntry> {
    return await this.#at(path, { followLast: false }, async ({ entry }) => {
      if (entry === undefined) throw failure("NOT_FOUND", path);
      const found = workspaceEntry(namesOf(path).join("/"), entry.stats);
      if (found === undefined) throw failure("WRONG_KIND", path, "is neither a file, a directory nor a link");
      return found;
    });
  }

  /** The directory with all that is in it. Nothing can be done with this workspace afterwards. */
  async remove(): Promise<void> {
    await this.#gate.pass(async () => {
      try {
        const root = await this.#openRoot();
        try {
          await emptyDirectory(root);
        } finally {
          await root.close();
        }
        await rmdir(this.directory);
      } catch (error) {
        throw workspaceFailure(error, "");
      }
    });
  }

  async #read(path: string): Promise<Buffer> {
    return await this.#at(path, { followLast: true }, (resolved) => readContent(resolved, path, this.#maxFileBytes));
  }

  /** `check` comes after what the path itself is refused for, and before anything is touched. */
  async #at<T>(
    path: string,
    options: ResolveOptions,
    work: (resolved: ResolvedPath) => Promise<T>,
    check: () => void = () => {},
  ): Promise<T> {
    const names = namesOf(path);
    check();
    return await this.#gate.pass(async () => {
      try {
        await using resolved = await resolve(() => this.#openRoot(), path, names, options);
        return await work(resolved);
      } catch (error) {
        throw workspaceFailure(error, path);
      }
    });
  }

  /** Held only as long as an operation takes; that it is still the same directory is looked at each time. */
  async #openRoot(): Promise<FileHandle> {
    const root = await holdDirectory(this.directory).catch((error: unknown) => {
      throw failure("NOT_FOUND", "", `is gone, or cannot be opened (${errnoOf(error) ?? "unknown"})`);
    });
    try {
      const { dev, ino } = await root.stat({ bigint: true });
      if (dev === this.#identity.dev && ino === this.#identity.ino) return root;
    } catch (error) {
      await root.close();
      throw error;
    }
    await root.close();
    throw failure("NOT_FOUND", "", "is gone: something else has its place");
  }
}
