import { invalid, type RuntimeError } from "../errors.ts";
import type { BatchPiece, ManifestEntry } from "./api.ts";
import { shown } from "./paths.ts";
import { readTar, type TarEntry } from "./tar.ts";

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
