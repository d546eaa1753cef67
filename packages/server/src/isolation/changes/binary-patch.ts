import { createHash, type Hash } from "node:crypto";
import { constants, deflateRawSync, deflateSync } from "node:zlib";
import { syscalls } from "@agentfense/fuse";
import { openDirectoryAt } from "../filesystem/delta.ts";
import { closing } from "../filesystem/descriptors.ts";
import { ChangesError } from "./changes-error.ts";
import { type EntryHandle, openRegular } from "./comparison.ts";
import { openDeltaFile } from "./destination.ts";
import { OpenLayers } from "./places.ts";

// The binary part of a patch, as git writes and reads it (gitformat: "GIT binary patch"):
//
//   literal SIZE          the new content, SIZE bytes when inflated; a second one for the old content lets it be reversed
//   zcmV…                 a zlib stream, 52 bytes a line; the first letter counts the bytes of its line (A to Z: 1 to 26,
//                         a to z: 27 to 52), then each four bytes are five digits of base 85, the last four filled with zeros
//   (an empty line)
//
// A file is deflated piece by piece, each by itself (Z_FULL_FLUSH ends on a byte and forgets what was before), so that no
// piece needs another: whoever reads slowly holds no descriptor and no more memory than one piece.

const { Stat } = syscalls;

const PIECE_BYTES = 1 << 20;
const LINE_BYTES = 52;
const DIGITS = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~");
/** Deflate, a window of 32 KiB, the usual level. */
const ZLIB_HEADER = Buffer.of(0x78, 0x9c);
export const NO_OBJECT = "0".repeat(40);

/** A file whose content goes into a patch piece by piece. */
export interface PatchFile {
  readonly side: "delta" | "codebase";
  /** Byte strings, from the root down. */
  readonly names: readonly string[];
  readonly size: number;
  readonly adler32: number;
  /** What the file was when it was measured: a patch of two versions would be none of either. */
  readonly stamp: string;
}

/** The content of a patch that is too long to be held. */
export interface PatchContent {
  /** What is new, then what was; undefined where there is nothing. */
  readonly files: readonly [now: PatchFile | undefined, old: PatchFile | undefined];
  /** Text that follows it. */
  readonly after: string;
}

/** A content as a whole. */
export function literal(content: Buffer): string {
  return `literal ${content.length}\n${linesOf(deflateSync(content))}\n`;
}

/** Both literals, piece by piece, and what follows them; `deflated` gives each piece, see deflatePiece. */
export async function* literals(
  { files, after }: PatchContent,
  deflated: (file: PatchFile, offset: number) => Promise<Uint8Array>,
): AsyncGenerator<string> {
  for (const file of files) {
    if (file === undefined || file.size === 0) {
      yield literal(Buffer.alloc(0));
      continue;
    }
    let rest = ZLIB_HEADER;
    yield `literal ${file.size}\n`;
    for (let offset = 0; offset < file.size; offset += PIECE_BYTES) {
      const stream = Buffer.concat([rest, await deflated(file, offset)]);
      const whole = stream.length - (stream.length % LINE_BYTES);
      yield linesOf(stream.subarray(0, whole));
      rest = stream.subarray(whole);
    }
    const adler = Buffer.alloc(4);
    adler.writeUInt32BE(file.adler32);
    yield `${linesOf(Buffer.concat([rest, adler]))}\n`;
  }
  if (after !== "") yield after;
}

/** The part of a file's zlib stream that begins with this byte of the file. */
export async function deflatePiece(
  spec: {
    readonly delta: string;
    readonly beneath?: readonly string[] | undefined;
    readonly lowers: readonly string[];
  },
  { file, offset }: { readonly file: PatchFile; readonly offset: number },
): Promise<Uint8Array> {
  using layers = new OpenLayers(spec.delta, spec.lowers, spec.beneath);
  const roots = file.side === "delta" ? layers.trees : layers.lowers;
  const stat = new Stat();
  const fd = roots.reduce((found, root) => (found >= 0 ? found : openNamed(root, file, stat)), -1);
  using _open = closing(fd);
  if (fd < 0 || stampOf(stat) !== file.stamp) throw hasMoved();
  const piece = readAt(fd, offset, Math.min(PIECE_BYTES, file.size - offset));
  if (piece === undefined) throw hasMoved();
  const isLast = offset + piece.length === file.size;
  return deflateRawSync(piece, { finishFlush: isLast ? constants.Z_FINISH : constants.Z_FULL_FLUSH });
}

/** What has to be known of a file before its first piece, and its name as an object of git. */
export async function measure(
  place: EntryHandle,
  { side, names }: Pick<PatchFile, "side" | "names">,
): Promise<{ readonly file: PatchFile; readonly object: string }> {
  const stat = new Stat();
  const fd = openSide(side, place, stat);
  if (fd < 0) throw hasMoved();
  using _open = closing(fd);
  const [object, adler] = [objectHash(stat.size), new Adler32()];
  for (let offset = 0; offset < stat.size; offset += PIECE_BYTES) {
    const piece = readAt(fd, offset, Math.min(PIECE_BYTES, stat.size - offset));
    if (piece === undefined) throw hasMoved();
    object.update(piece);
    adler.update(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const file = { side, names, size: stat.size, adler32: adler.digest().readUInt32BE(), stamp: stampOf(stat) };
  return { file, object: object.digest("hex") };
}

/** What git calls a content: SHA-1 over its kind, its size and itself. */
export function objectName(content: Buffer): string {
  return objectHash(content.length).update(content).digest("hex");
}

function objectHash(size: number): Hash {
  return createHash("sha1").update(`blob ${size}\0`);
}

function hasMoved(): ChangesError {
  return new ChangesError("DELTA_UNUSABLE", "a file changed, or could not be read, while its patch was being made");
}

/** The agent may have made a file of the delta unreadable to a server that is not root; the codebase's are as they are. */
export function openSide(side: PatchFile["side"], place: EntryHandle, stat: syscalls.Stat): number {
  return side === "delta" ? openDeltaFile(place, stat) : openRegular(place, stat);
}

function openNamed(root: number, { side, names }: PatchFile, stat: syscalls.Stat): number {
  const directory = openDirectoryAt(root, names.slice(0, -1));
  if (directory < 0) return directory;
  using _open = closing(directory);
  return openSide(side, { directory, name: names.at(-1)! }, stat);
}

/** So many bytes, or undefined when they are not there any more. */
export function readAt(fd: number, offset: number, length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length);
  for (let filled = 0; filled < length; ) {
    const read = syscalls.pread(fd, bytes.subarray(filled), length - filled, offset + filled);
    if (read <= 0) return undefined;
    filled += read;
  }
  return bytes;
}

function stampOf({ ino, size, mtime, mtimeNs }: syscalls.Stat): string {
  return [ino, size, mtime, mtimeNs].join(" ");
}

function linesOf(bytes: Buffer): string {
  const lines = Math.ceil(bytes.length / LINE_BYTES);
  const text = Buffer.allocUnsafe(Math.ceil(bytes.length / 4) * 5 + 2 * lines);
  let end = 0;
  for (let start = 0; start < bytes.length; start += LINE_BYTES) {
    const length = Math.min(LINE_BYTES, bytes.length - start);
    text[end++] = length <= 26 ? 64 + length : 70 + length;
    for (let at = start; at < start + length; at += 4) {
      let value = 0;
      for (let byte = at; byte < at + 4; byte++) value = value * 256 + (byte < bytes.length ? bytes[byte]! : 0);
      for (let digit = end + 4; digit >= end; digit--) {
        text[digit] = DIGITS[value % 85]!;
        value = Math.floor(value / 85);
      }
      end += 5;
    }
    text[end++] = 10;
  }
  return text.toString("latin1", 0, end);
}

/** The check sum at the end of a zlib stream (RFC 1950). */
class Adler32 {
  #a = 1;
  #b = 0;

  update(bytes: Buffer): void {
    // So many bytes can be added before a sum outgrows 32 bits.
    for (let start = 0; start < bytes.length; start += 3800) {
      const end = Math.min(start + 3800, bytes.length);
      for (let at = start; at < end; at++) {
        this.#a += bytes[at]!;
        this.#b += this.#a;
      }
      this.#a %= 65_521;
      this.#b %= 65_521;
    }
  }

  digest(): Buffer {
    const sum = Buffer.alloc(4);
    sum.writeUInt16BE(this.#b, 0);
    sum.writeUInt16BE(this.#a, 2);
    return sum;
  }
}
