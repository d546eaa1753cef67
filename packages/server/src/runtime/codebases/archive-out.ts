import { once } from "node:events";
import { type Header, type Pack, pack } from "tar-stream";
import { OpenContent } from "../../isolation/codebase/reading.ts";
import type { EntryRecord } from "../store/store.ts";

type EntryHeader = Partial<Header> & Pick<Header, "name">;

/** Entries of a directory as a tar stream, with names relative to it. Files are opened as their turn comes. */
export async function* packArchive(
  entries: readonly EntryRecord[],
  directory: string,
  open: (path: string) => Promise<number>,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const archive = pack();
  const producing = produce();
  // Waited for in the end; until then a failure reaches the reader through the stream.
  producing.catch((error: Error) => archive.destroy(error));
  try {
    yield* archive as AsyncIterable<Uint8Array>;
    await producing;
  } finally {
    archive.destroy();
    await producing.catch(() => {});
  }

  async function produce(): Promise<void> {
    for (const entry of entries) {
      signal?.throwIfAborted();
      const header = headerOf(entry, directory);
      if (entry.kind === "file") await addFile(header, new OpenContent(await open(entry.path), entry.size, signal));
      else await add(header).done;
    }
    archive.finalize();
  }

  async function addFile(header: EntryHeader, content: OpenContent): Promise<void> {
    const { sink, done } = add(header);
    try {
      for await (const chunk of content) {
        if (sink.write(chunk)) continue;
        await Promise.race([once(sink, "drain").catch(() => {}), done]);
      }
      sink.end(null);
      await done;
    } finally {
      content.close();
    }
  }

  // It is done when the archive has taken it, and fails when nobody reads the archive any more.
  function add(header: EntryHeader): { readonly sink: ReturnType<Pack["entry"]>; readonly done: Promise<void> } {
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    done.catch(() => {});
    const sink = archive.entry(header, (error) => (error ? reject(error) : resolve()));
    sink.on("error", () => {}); // the callback tells
    return { sink, done };
  }
}

function headerOf({ path, kind, mode, size, target, modifiedAtMs }: EntryRecord, directory: string): EntryHeader {
  const name = directory === "" ? path : path.slice(directory.length + 1);
  const common = { name, mode, mtime: new Date(modifiedAtMs), uid: 0, gid: 0 };
  if (kind === "symlink") return { ...common, type: "symlink", linkname: target };
  return kind === "directory" ? { ...common, type: "directory" } : { ...common, type: "file", size };
}
