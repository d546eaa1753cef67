import type { SandboxClient } from "../../client/client.ts";
import { CodebaseError } from "../../errors.ts";
import type { CallOptions } from "../../model/options.ts";
import type { FileInfo } from "../../model/records.ts";
import type { CopySource, NewEntry } from "./entry.ts";

/** More directories than this are not asked for one by one. */
const DIRECTORIES_AT_MOST = 32;

/** A codebase at a version, as far as some paths ("src/a.ts") need it. */
export async function codebaseSource(
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
