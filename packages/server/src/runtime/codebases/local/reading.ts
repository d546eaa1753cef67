import { OpenContent } from "../../../isolation/codebase/reading.ts";
import { openTreeFile, type TreeEntry } from "../../../isolation/codebase/tree.ts";
import type { Jobs } from "../../../isolation/jobs/thread.ts";
import { decodePageToken, type Page, type PageRequest, pageLimit, pageOf } from "../../page.ts";
import { RuntimeError } from "../../runtime-error.ts";
import type { EntryRecord } from "../../store/store.ts";
import { packArchive } from "../archive.ts";
import { toRuntimeError } from "../parts.ts";
import { checkDirectory, checkPath, comparePaths, fileNotFound, shown } from "../paths.ts";
import type { LocalDirectory } from "./directories.ts";

/** A directory read as a codebase is. Nobody keeps a manifest of it: it is looked at anew every time, and has no hashes. */
export function localReading(jobs: Jobs) {
  async function list({ path: directory }: LocalDirectory, path: string, recursive: boolean): Promise<Found> {
    try {
      const found = await jobs.run("listTree", { directory, path, recursive });
      if (typeof found === "string") return found;
      return found.map(recordOf).sort((a, b) => comparePaths(a.path, b.path));
    } catch (error) {
      throw toRuntimeError(error);
    }
  }

  return {
    async listFiles(
      directory: LocalDirectory,
      query: PageRequest & { readonly path: string; readonly recursive: boolean },
    ): Promise<Page<EntryRecord>> {
      const path = checkDirectory(query.path);
      const after = decodePageToken(query.pageToken, ["string"])?.[0] ?? "";
      const found = await list(directory, path, query.recursive);
      if (found === "absent" && !query.recursive) return { items: [], nextPageToken: "" };
      const entries = required(found, path).filter((entry) => comparePaths(entry.path, after) > 0);
      const limit = query.pageSize > 0 ? pageLimit(query.pageSize) : entries.length;
      return pageOf(entries, limit, (last) => [last.path]);
    },

    download(directory: LocalDirectory, path: string, signal: AbortSignal | undefined) {
      const { fd, entry } = openFile(directory, checkPath(path));
      return { entry: recordOf(entry), content: new OpenContent(fd, entry.size, signal) };
    },

    async downloadArchive(directory: LocalDirectory, query: { readonly path: string; readonly signal?: AbortSignal }) {
      const path = checkDirectory(query.path);
      const entries = required(await list(directory, path, true), path);
      return packArchive(entries, path, async (name) => openFile(directory, name).fd, query.signal);
    },
  };
}

type Found = readonly EntryRecord[] | "absent" | "other";

function openFile({ path: directory }: LocalDirectory, path: string): { fd: number; entry: TreeEntry } {
  const opened = openTreeFile(directory, path);
  if (opened === undefined) throw fileNotFound(path);
  return opened;
}

function required(found: Found, path: string): readonly EntryRecord[] {
  if (found === "absent") throw fileNotFound(path);
  if (found !== "other") return found;
  throw new RuntimeError("FILE_WRONG_KIND", `${shown(path)} is not a directory`, { details: { path } });
}

function recordOf(entry: TreeEntry): EntryRecord {
  return { ...entry, sha256: "", version: 0 };
}
