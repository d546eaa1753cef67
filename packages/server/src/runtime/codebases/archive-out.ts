import { OpenContent } from "../../isolation/codebase/reading.ts";
import type { EntryRecord } from "../store/store.ts";
import { TAR_END, tarHeader, tarPadding } from "./tar.ts";

/** Entries of a directory as a tar stream, with names relative to it. Files are opened as their turn comes. */
export async function* packArchive(
  entries: readonly EntryRecord[],
  directory: string,
  open: (path: string) => Promise<number>,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (const { path, kind, mode, size, target, modifiedAtMs } of entries) {
    signal?.throwIfAborted();
    const name = directory === "" ? path : path.slice(directory.length + 1);
    if (kind !== "file") {
      yield tarHeader({ type: kind, name, mode, modifiedAtMs, ...(kind === "symlink" && { target }) });
      continue;
    }
    const content = new OpenContent(await open(path), size, signal);
    try {
      yield tarHeader({ type: "file", name, mode, size, modifiedAtMs });
      yield* content;
    } finally {
      content.close();
    }
    // A content that was given up ends early, and what is short must not look whole.
    signal?.throwIfAborted();
    yield tarPadding(size);
  }
  yield TAR_END;
}
