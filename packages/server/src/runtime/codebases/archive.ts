import { OpenContent } from "../../isolation/codebase/reading.ts";
import { invalid, type RuntimeError } from "../runtime-error.ts";
import type { EntryRecord } from "../store/store.ts";
import type { BatchPiece, ManifestEntry } from "./api.ts";
import { shown } from "./paths.ts";
import { readTar, TAR_END, type TarEntry, tarHeader, tarPadding } from "./tar.ts";

// Names that are not UTF-8 must be refused, not repaired.
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A tar archive as a batch. Files, directories and symbolic links; every other kind of entry, an absolute name and one with
 * `..` are refused. Links are data here as everywhere, and what is below one is refused when the batch is planned.
 */
export async function* unpackArchive(tar: AsyncIterable<Uint8Array>): AsyncGenerator<BatchPiece> {
  let isWanted = false;
  for await (const piece of readTar(refusingGzip(tar))) {
    if ("data" in piece) {
      if (isWanted) yield piece;
      continue;
    }
    const entry = entryOf(piece.entry);
    isWanted = entry !== undefined;
    if (entry !== undefined) yield { entry };
  }
}

async function* refusingGzip(tar: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isFirst = true;
  for await (const chunk of tar) {
    if (chunk.length === 0) continue;
    if (isFirst && chunk[0] === 0x1f) {
      throw invalid("the archive is compressed: send it as plain tar");
    }
    isFirst = false;
    yield chunk;
  }
}

/** Undefined for the root itself. */
function entryOf({ type, name, target, mode: bits, size }: TarEntry): ManifestEntry | undefined {
  const given = decode(name);
  if (given.startsWith("/")) throw refusal(given, "its name is absolute");
  const isDirectory = type === "directory";
  const path = given.replace(/^(\.\/)+/, "").replace(isDirectory ? /\/$/ : /$^/, "");
  if (isDirectory && (path === "" || path === ".")) return undefined;
  const mode = bits & 0o777;
  switch (type) {
    case "file":
    case "contiguous file":
      return { kind: "file", path, mode, size, sha256: "" };
    case "directory":
      return { kind: "directory", path, mode };
    case "symlink":
      return { kind: "symlink", path, target: decode(target) };
    default:
      throw refusal(given, `it is a ${type ?? "special file"}`);
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    throw refusal(Buffer.from(bytes).toString("latin1"), "its name is not UTF-8");
  }
}

function refusal(name: string, reason: string): RuntimeError {
  return invalid(`the archive's entry ${shown(name)} is refused: ${reason}`);
}

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
