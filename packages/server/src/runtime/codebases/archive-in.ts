import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Header } from "tar-stream";
import { invalid, RuntimeError } from "../errors.ts";
import { watched } from "../feeding.ts";
import type { BatchPiece, ManifestEntry } from "./api.ts";
import { shown } from "./paths.ts";

// Names that are not UTF-8 must be refused, not repaired, so they are asked for as bytes. The types do not know the option.
const NAMES_AS_BYTES: Parameters<typeof extract>[0] & { readonly filenameEncoding: "latin1" } = {
  filenameEncoding: "latin1",
};
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A tar archive as a batch. Files, directories and symbolic links; every other kind of entry, an absolute name and one with
 * `..` are refused. Links are data here as everywhere, and what is below one is refused when the batch is planned.
 */
export async function* unpackArchive(tar: AsyncIterable<Uint8Array>): AsyncGenerator<BatchPiece> {
  const entries = extract(NAMES_AS_BYTES);
  const source = watched(refusingGzip(tar));
  const feeding = pipeline(Readable.from(source.items), entries).catch(() => {});
  try {
    for await (const entry of entries) {
      const wanted = entryOf(entry.header);
      if (wanted !== undefined) yield { entry: wanted };
      for await (const data of entry as AsyncIterable<Uint8Array>) if (wanted !== undefined) yield { data };
    }
  } catch (error) {
    if (source.fault !== undefined) throw source.fault.error;
    if (error instanceof RuntimeError) throw error;
    throw new RuntimeError("INVALID_ARGUMENT", "the archive is damaged", { cause: error });
  } finally {
    entries.destroy();
    await feeding;
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
function entryOf(header: Header): ManifestEntry | undefined {
  const isDirectory = header.type === "directory";
  // Extended headers have their names in UTF-8.
  const pax = (header.pax ?? {}) as { readonly path?: string; readonly linkpath?: string };
  const given = pax.path === undefined ? decode(header.name) : header.name;
  if (given.startsWith("/")) throw refusal(given, "its name is absolute");
  const path = given.replace(/^(\.\/)+/, "").replace(isDirectory ? /\/$/ : /$^/, "");
  if (isDirectory && (path === "" || path === ".")) return undefined;
  const mode = header.mode & 0o777;
  switch (header.type) {
    case "file":
    case "contiguous-file":
      return { kind: "file", path, mode, size: header.size, sha256: "" };
    case "directory":
      return { kind: "directory", path, mode };
    case "symlink": {
      const target = header.linkname ?? "";
      return { kind: "symlink", path, target: pax.linkpath === undefined ? decode(target) : target };
    }
    default:
      throw refusal(given, `it is a ${header.type === "link" ? "hard link" : (header.type ?? "special file")}`);
  }
}

function decode(bytes: string): string {
  try {
    return strictUtf8.decode(Buffer.from(bytes, "latin1"));
  } catch {
    throw refusal(bytes, "its name is not UTF-8");
  }
}

function refusal(name: string, reason: string): RuntimeError {
  return invalid(`the archive's entry ${shown(name)} is refused: ${reason}`);
}
