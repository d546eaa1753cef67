import { CodebaseError, FileNotFoundError, type FileStat, type Sandbox } from "@agentfense/sdk";
import { BoxFiles } from "./box-files.ts";
import { E2bFailure } from "./failure.ts";
import { absolutePath, inWorkspace } from "./paths.ts";

/** What is at a path. */
export interface Entry {
  readonly kind: "file" | "directory" | "symlink";
  /** As the client named it, or what it named the directory. */
  readonly path: string;
  readonly size: number;
  readonly mode: number;
  readonly owner: string;
  readonly group: string;
  readonly modifiedAt: Date;
  /** Of a symbolic link, else "". */
  readonly target: string;
  /** What its writer said of it: extended attributes, without the beginning of their names. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Of extended attributes that are E2B's metadata, behind "user.". */
const METADATA_PREFIX = "e2b.";

export interface Content {
  /** Of what there is to read; undefined when that is not known before. */
  readonly size: number | undefined;
  readonly body: ReadableStream<Uint8Array>;
}

/** Files at paths without dots. */
export interface Files {
  stat(path: string): Promise<Entry>;
  /** All below a directory, down to a depth; nothing behind symbolic links. */
  list(path: string, depth: number): Promise<readonly Entry[]>;
  /** With the directories on the way; false: there was one already. */
  makeDirectory(path: string): Promise<boolean>;
  /** With the directories on the way. */
  move(source: string, destination: string): Promise<void>;
  /** With all below it; what is not there is no failure. */
  remove(path: string): Promise<void>;
  read(path: string): Promise<Content>;
  /** With the directories on the way. The metadata replaces what the file had. */
  write(path: string, content: ReadableStream<Uint8Array> | Uint8Array, metadata: Entry["metadata"]): Promise<void>;
}

/** Those of the workspace by the contract's calls, all others by commands in the box: both see what a process there sees. */
export function filesOf(sandbox: Sandbox, signal: AbortSignal): Files {
  const [workspace, box] = [new WorkspaceFiles(sandbox, signal), new BoxFiles(sandbox, signal)];
  const at = (path: string): Files => (inWorkspace(path) === undefined ? box : workspace);
  const from = <T>(given: string, work: (files: Files, path: string) => Promise<T>): Promise<T> => {
    const path = absolutePath(given);
    return work(at(path), path);
  };
  return {
    stat: (given) => from(given, (files, path) => files.stat(path)),
    list: (given, depth) => from(given, (files, path) => files.list(path, depth)),
    makeDirectory: (given) => from(given, (files, path) => files.makeDirectory(path)),
    move: (source, given) => {
      const destination = absolutePath(given);
      return from(source, (files, path) => (at(destination) === files ? files : box).move(path, destination));
    },
    remove: (given) => from(given, (files, path) => files.remove(path)),
    read: (given) => from(given, (files, path) => files.read(path)),
    write: (given, content, metadata) => from(given, (files, path) => files.write(path, content, metadata)),
  };
}

class WorkspaceFiles implements Files {
  readonly #sandbox: Sandbox;
  readonly #signal: AbortSignal;

  constructor(sandbox: Sandbox, signal: AbortSignal) {
    this.#sandbox = sandbox;
    this.#signal = signal;
  }

  async stat(path: string): Promise<Entry> {
    return entryOf(path, await this.#files.stat(inWorkspace(path)!, { attributes: true, ...this.#options }));
  }

  async list(path: string, depth: number): Promise<readonly Entry[]> {
    const root = inWorkspace(path)!;
    const stat = await this.#files.stat(root, this.#options);
    if (!stat.isDirectory()) throw new E2bFailure("invalid_argument", `${path} is not a directory`);
    const options = { recursive: depth > 1, withFileTypes: true as const, attributes: true, ...this.#options };
    const found = (await this.#files.readdir(root, options)).map((each) => {
      const below = root === "/" ? each.path : each.path.slice(root.length);
      return { below, entry: entryOf(`${path}${below}`, each) };
    });
    return found.filter(({ below }) => below.split("/").length - 1 <= depth).map(({ entry }) => entry);
  }

  async makeDirectory(path: string): Promise<boolean> {
    const at = inWorkspace(path)!;
    const there = await this.#statIfAny(at);
    if (there?.isDirectory()) return false;
    if (there !== undefined) throw new E2bFailure("invalid_argument", `${path} is there and no directory`);
    await this.#files.mkdir(at, { recursive: true, ...this.#options });
    return true;
  }

  async move(source: string, destination: string): Promise<void> {
    const target = inWorkspace(destination)!;
    await this.#files.stat(inWorkspace(source)!, this.#options);
    await this.#makeParents(target);
    await this.#files.rename(inWorkspace(source)!, target, this.#options);
  }

  async remove(path: string): Promise<void> {
    await this.#files.rm(inWorkspace(path)!, { recursive: true, force: true, ...this.#options });
  }

  async read(path: string): Promise<Content> {
    const at = inWorkspace(path)!;
    const stat = await this.#files.stat(at, this.#options);
    if (stat.isDirectory()) throw new E2bFailure("invalid_argument", `path '${path}' is a directory`);
    const reader = this.#files.readStream(at, this.#options).getReader();
    // Whether it can be read shows with the first piece.
    let first: Awaited<ReturnType<typeof reader.read>> | undefined = await reader.read();
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = first ?? (await reader.read());
          first = undefined;
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
    return { size: stat.isFile() ? stat.size : undefined, body };
  }

  async write(
    path: string,
    content: ReadableStream<Uint8Array> | Uint8Array,
    metadata: Entry["metadata"],
  ): Promise<void> {
    const named = Object.entries(metadata).map(([name, value]) => [METADATA_PREFIX + name, value]);
    const attributes = Object.fromEntries(named) as Record<string, string>;
    const at = inWorkspace(path)!;
    if (at === "/") throw new E2bFailure("invalid_argument", `path '${path}' is a directory`);
    await this.#makeParents(at);
    await this.#files.writeFile(at, content, { attributes, attributePrefix: METADATA_PREFIX, ...this.#options });
  }

  get #files() {
    return this.#sandbox.files;
  }

  get #options() {
    return { signal: this.#signal };
  }

  async #makeParents(path: string): Promise<void> {
    const parent = path.slice(0, path.lastIndexOf("/"));
    if (parent === "") return;
    try {
      await this.#files.mkdir(parent, { recursive: true, ...this.#options });
    } catch (error) {
      // The rules may let a file be written whose directory they only show.
      if (!(error instanceof CodebaseError) || (await this.#statIfAny(parent)) === undefined) throw error;
    }
  }

  async #statIfAny(path: string): Promise<FileStat | undefined> {
    try {
      return await this.#files.stat(path, this.#options);
    } catch (error) {
      if (error instanceof FileNotFoundError) return undefined;
      throw error;
    }
  }
}

export function entryOf(path: string, stat: FileStat): Entry {
  const kind = stat.isDirectory() ? "directory" : stat.isSymbolicLink() ? "symlink" : "file";
  const { size, mode, modifiedAt, target, attributes = {} } = stat;
  const named = Object.entries(attributes).filter(([name]) => name.startsWith(METADATA_PREFIX));
  const metadata = Object.fromEntries(named.map(([name, value]) => [name.slice(METADATA_PREFIX.length), value]));
  return { kind, path, size, mode: mode & 0o7777, owner: "user", group: "user", modifiedAt, target, metadata };
}
