import type { SandboxClient } from "../../client/client.ts";
import { CodebaseError } from "../../errors.ts";
import type { CallOptions } from "../../model/options.ts";
import type { ApplyResult, FileInfo } from "../../model/records.ts";
import type { CopySource, NewEntry } from "./entry.ts";
import { type LocalCopy, pathsOf } from "./local-copy.ts";

/** The directory of this machine that a codebase was uploaded from. */
export class LocalDirectory {
  readonly #client: SandboxClient;
  readonly #codebaseId: string;
  readonly #copy: LocalCopy;

  constructor(client: SandboxClient, codebaseId: string, copy: LocalCopy) {
    this.#client = client;
    this.#codebaseId = codebaseId;
    this.#copy = copy;
  }

  /** Has the directory follow what was applied to the codebase; gives what became of each change in both. */
  async follow(applied: ApplyResult, options: CallOptions): Promise<ApplyResult> {
    const done = applied.outcomes.filter((outcome) => outcome.applied);
    if (done.length === 0) return applied;
    const paths = done.flatMap(({ change }) => pathsOf(change));
    const codebase = { id: this.#codebaseId, version: applied.version };
    const source = await codebaseSource(this.#client, codebase, paths, options);
    return { ...applied, outcomes: await this.#copy.write(applied.outcomes, source, options) };
  }

  /** The same for changes that would be applied. */
  async rehearse(planned: ApplyResult, options: CallOptions): Promise<ApplyResult> {
    return { ...planned, outcomes: await this.#copy.rehearse(planned.outcomes, options) };
  }
}

/** More directories than this are not asked for one by one. */
const DIRECTORIES_AT_MOST = 32;

/** A codebase at a version, as far as some paths ("src/a.ts") need it. */
async function codebaseSource(
  client: SandboxClient,
  codebase: { readonly id: string; readonly version: number },
  paths: Iterable<string>,
  { signal }: CallOptions,
): Promise<CopySource> {
  const { id, version } = codebase;
  const wanted = new Set(paths);
  const parents = new Set([...wanted].map((path) => path.slice(0, Math.max(0, path.lastIndexOf("/")))));
  const entries = new Map<string, NewEntry>();
  const learn = async (path: string, recursive: boolean): Promise<void> => {
    for await (const info of client.listFiles(id, { path, recursive, version, signal })) {
      if (wanted.has(info.path)) entries.set(info.path, entryOf(info));
    }
  };
  if (parents.size > DIRECTORIES_AT_MOST) await learn("", true);
  else for (const parent of parents) await learn(parent, false).catch(ignoreMissing);
  return {
    entry: async (path) => entries.get(path),
    content: (path) => client.downloadStream(id, path, { version, signal }),
  };
}

/** A directory that is gone, or is none any more, has nothing in it. */
function ignoreMissing(error: unknown): void {
  const isMissing =
    error instanceof CodebaseError && (error.code === "FILE_NOT_FOUND" || error.code === "FILE_WRONG_KIND");
  if (!isMissing) throw error;
}

function entryOf({ kind, sha256, target, mode }: FileInfo): NewEntry {
  if (kind === "directory") return { kind, mode };
  return kind === "symlink" ? { kind, target, mode } : { kind, sha256, mode };
}
