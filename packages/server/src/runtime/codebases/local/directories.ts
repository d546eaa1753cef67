import { lstat, realpath, stat } from "node:fs/promises";
import { basename, relative, sep } from "node:path";
import { isWithin } from "../../../isolation/instance/home-directory.ts";
import { Queue } from "../../../isolation/waiting.ts";
import { type Caller, maySee, SERVER } from "../../caller.ts";
import { RuntimeError } from "../../runtime-error.ts";
import type { CodebaseRecord } from "../../store/store.ts";
import type { CodebaseChange, DirectCodebase } from "../api.ts";
import { codebaseNotFound } from "../parts.ts";
import { checkLabel } from "../paths.ts";
import { newCodebase } from "../registry.ts";

/** A directory of the host that is a codebase. */
export interface LocalDirectory {
  readonly record: CodebaseRecord;
  /** Absolute, without symlinks. */
  readonly path: string;
}

type Listener = (change: CodebaseChange) => Promise<void>;

/** Local codebases have no owner but whoever runs the process. */
const OWNER = "local";

/**
 * Directories that the program around us declared to be codebases; requests name them by id. Opening one twice gives two
 * codebases, each with a life of its own; what is written through one is told to the sandboxes of all that show it. They are
 * forgotten with the process, and never touched but by `write`.
 */
export class LocalDirectories {
  readonly #byId = new Map<string, LocalDirectory>();
  readonly #listeners = new Set<Listener>();
  /** One at a time for all of them: they may contain each other. */
  readonly #turns = new Queue();
  readonly #reserved: readonly string[];

  /** `reserved`: where our own deltas and mounts are, which no sandbox may have below its workspace. */
  constructor(options: { readonly reserved: readonly string[] }) {
    this.#reserved = options.reserved;
  }

  async open(directory: string, options: { readonly name?: string } = {}): Promise<CodebaseRecord> {
    const path = await existing(directory);
    const reserved = (await Promise.all(this.#reserved.map((place) => realpath(place).catch(() => place)))).find(
      (place) => isWithin(path, place) || isWithin(place, path),
    );
    if (reserved !== undefined) {
      throw new RuntimeError("INVALID_ARGUMENT", `${directory} cannot be a workspace: it shares ${reserved} with us`, {
        hint: "open a directory that does not contain the files of running sandboxes",
      });
    }
    const name = options.name === undefined ? nameOf(path) : checkLabel("name", options.name);
    const record = newCodebase(name, OWNER, Date.now());
    this.#byId.set(record.id, { record, path });
    return record;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  all(): readonly CodebaseRecord[] {
    return [...this.#byId.values()].map(({ record }) => record);
  }

  /** For a caller that may know of it. */
  find(caller: Caller, id: string): LocalDirectory {
    const found = this.#byId.get(id);
    if (found === undefined || !maySee(caller, found.record.ownerId)) throw codebaseNotFound();
    return found;
  }

  forget(id: string): void {
    this.#byId.delete(id);
  }

  /** To mount; nothing is held. */
  async layer(id: string): Promise<{ readonly directory: string; release(): Promise<void> }> {
    const { path } = this.find(SERVER, id);
    const entry = await lstat(path).catch(() => undefined);
    if (entry?.isDirectory()) return { directory: path, release: async () => {} };
    throw new RuntimeError("FILE_NOT_FOUND", `the directory ${path} is gone`);
  }

  direct(id: string): DirectCodebase | undefined {
    if (!this.has(id)) return undefined;
    return {
      write: (sandboxId, write) =>
        this.#turns.run(async () => {
          const { path } = this.find(SERVER, id);
          const paths = await write(path);
          if (paths.length > 0) await this.#tell(path, paths, sandboxId);
        }),
    };
  }

  onChange(listener: Listener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async #tell(changed: string, paths: readonly string[], sandboxId: string): Promise<void> {
    const createdAtMs = Date.now();
    for (const { record, path } of this.#byId.values()) {
      const shown = paths.flatMap((each) => pathFrom(path, changed, each) ?? []);
      if (shown.length === 0) continue;
      const change = { codebaseId: record.id, version: 0, paths: shown, sandboxId, createdAtMs };
      for (const listener of this.#listeners) await listener(change);
    }
  }
}

async function existing(directory: string): Promise<string> {
  try {
    const path = await realpath(directory);
    if ((await stat(path)).isDirectory()) return path;
  } catch (cause) {
    throw new RuntimeError("FILE_NOT_FOUND", `the directory ${directory} cannot be opened`, { cause });
  }
  throw new RuntimeError("FILE_WRONG_KIND", `${directory} is not a directory`);
}

/** A name can be any bytes; a label is text on one line. */
function nameOf(path: string): string {
  try {
    return checkLabel("name", basename(path));
  } catch {
    return "directory";
  }
}

/** A path below `changed` as one below `root`, if it is there. */
function pathFrom(root: string, changed: string, path: string): string | undefined {
  if (root === changed) return path;
  const inside = relative(root, `${changed}/${path}`);
  return inside === "" || inside === ".." || inside.startsWith(`..${sep}`) ? undefined : inside;
}
