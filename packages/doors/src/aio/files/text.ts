import { FileNotFoundError, type Sandbox } from "@agentfense/sdk";
import { fileRefusal, onFile } from "./file-refusal.ts";

/** The longest file that is read or edited as a text. */
const LARGEST_BYTES = 16 * 1024 * 1024;

export interface FileAt {
  readonly sandbox: Sandbox;
  /** In the workspace. */
  readonly path: string;
  readonly operation: string;
  readonly signal: AbortSignal;
}

/** All of a file as a text. What is too large or no UTF-8 is refused. */
export async function readText(at: FileAt): Promise<string> {
  const bytes = await readBytes(at);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw fileRefusal({
      ...at,
      message: "the file is no UTF-8 text",
      type: "decode_error",
      hint: "get its bytes from /v1/file/download",
    });
  }
}

async function readBytes(at: FileAt): Promise<Uint8Array> {
  const { sandbox, path, signal } = at;
  return await onFile(at, async () => {
    const pieces: Uint8Array[] = [];
    let size = 0;
    // Counted as it comes: what a file's size was said to be may be over by now.
    for await (const piece of sandbox.files.readStream(path, { signal })) {
      size += piece.byteLength;
      if (size > LARGEST_BYTES) throw tooLarge(at);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  });
}

/** Writes a file, and the directories on its way where they are missing. */
export async function writeWithParents(
  at: FileAt,
  content: string | Uint8Array,
  { append = false }: { readonly append?: boolean } = {},
): Promise<void> {
  const { sandbox, path, signal } = at;
  const flag = append ? "a" : "w";
  await onFile(at, async () => {
    try {
      await sandbox.files.writeFile(path, content, { flag, signal });
    } catch (error) {
      if (!(error instanceof FileNotFoundError)) throw error;
      await sandbox.files.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true, signal });
      await sandbox.files.writeFile(path, content, { flag, signal });
    }
  });
}

function tooLarge(at: FileAt): Error {
  return fileRefusal({
    ...at,
    message: `the file has more than ${LARGEST_BYTES} bytes`,
    type: "io_error",
    errno: "EFBIG",
    hint: "get it from /v1/file/download",
  });
}
