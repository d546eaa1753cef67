import { invalid } from "../faults.ts";
import { directoryEntry, type Entry, fileEntry, linkEntry, modeOf, sizeOf } from "../files/entry.ts";
import { byPath } from "../files/paths.ts";
import { filePath, shown } from "./codebase-paths.ts";
import type { Wanted } from "./draft.ts";

// Tar as POSIX has it (ustar): blocks of 512 bytes, a header before each file, two empty blocks at the end. What does
// not fit a header stands in an extended one before it, as "LENGTH NAME=VALUE\n" records.

const BLOCK = 512;
const TYPES = { file: "0", symlink: "2", directory: "5", extended: "x" } as const;
/** For error texts. */
const OTHER_TYPES: Readonly<Record<string, string>> = {
  "1": "a hard link",
  "3": "a device",
  "4": "a device",
  "6": "a fifo",
};

/** Files, directories and symbolic links; every other kind of entry, an absolute name and one with `..` are refused. */
export function unpackTar(archive: Buffer): Wanted[] {
  if (archive[0] === 0x1f) throw invalid("the archive is compressed: send it as plain tar");
  if (archive.length % BLOCK !== 0) throw invalid("the archive is damaged");
  const wanted: Wanted[] = [];
  let extended: ReadonlyMap<string, string> = new Map();
  for (let at = 0; at < archive.length; ) {
    const header = archive.subarray(at, at + BLOCK);
    at += BLOCK;
    if (header[0] === 0) continue;
    if (checksumOf(header) !== octalAt(header, 148, 8)) throw invalid("the archive is damaged");
    const type = String.fromCharCode(header[156] ?? 0);
    const size = Number(extended.get("size") ?? octalAt(header, 124, 12));
    const content = archive.subarray(at, at + size);
    if (content.length < size) throw invalid("the archive is damaged");
    at += Math.ceil(size / BLOCK) * BLOCK;
    if (type === TYPES.extended || type === "g") {
      if (type === TYPES.extended) extended = recordsOf(content);
      continue;
    }
    const one = wantedOf(header, type, content, extended);
    if (one !== undefined) wanted.push(one);
    extended = new Map();
  }
  return wanted;
}

/** Undefined for the root itself. */
function wantedOf(
  header: Buffer,
  type: string,
  content: Buffer,
  extended: ReadonlyMap<string, string>,
): Wanted | undefined {
  const prefix = textAt(header, 345, 155);
  const plain = textAt(header, 0, 100);
  const name = extended.get("path") ?? (prefix === "" ? plain : `${prefix}/${plain}`);
  if (name.startsWith("/")) throw refusal(name, "its name is absolute");
  const relative = name.replace(/^(\.\/)+/, "").replace(/\/$/, "");
  const mode = octalAt(header, 100, 8) & 0o777;
  const isDirectory = type === TYPES.directory;
  if (isDirectory && (relative === "" || relative === ".")) return undefined;
  const path = filePath(relative);
  if (isDirectory) return { path, entry: directoryEntry(mode) };
  if (type === TYPES.symlink) return { path, entry: linkEntry(extended.get("linkpath") ?? textAt(header, 157, 100)) };
  if (type === TYPES.file || type === "\0") return { path, entry: fileEntry(Uint8Array.from(content), mode) };
  throw refusal(name, `it is ${OTHER_TYPES[type] ?? "a special file"}`);
}

/** Names are relative to the directory. */
export function packTar(entries: Iterable<readonly [path: string, entry: Entry]>, directory: string): Buffer {
  const blocks: Buffer[] = [];
  const strip = directory === "/" ? 1 : directory.length + 1;
  const sorted = [...entries].map(([path, entry]) => ({ path, entry })).sort(byPath);
  for (const { path, entry } of sorted) {
    const name = path.slice(strip);
    const target = entry.kind === "symlink" ? entry.target : "";
    const records = [
      ...(Buffer.byteLength(name) > 100 ? [record("path", name)] : []),
      ...(Buffer.byteLength(target) > 100 ? [record("linkpath", target)] : []),
    ].join("");
    if (records !== "")
      blocks.push(headerBlock("x", Buffer.byteLength(records), TYPES.extended), padded(Buffer.from(records)));
    const size = entry.kind === "file" ? sizeOf(entry) : 0;
    blocks.push(headerBlock(name, size, TYPES[entry.kind], { mode: modeOf(entry), target, at: entry.modifiedAtMs }));
    if (entry.kind === "file") blocks.push(padded(Buffer.from(entry.content)));
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function headerBlock(
  name: string,
  size: number,
  type: string,
  { mode = 0o644, target = "", at = 0 }: { mode?: number; target?: string; at?: number } = {},
): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number): void => {
    header.write(value.toString(8).padStart(length - 1, "0"), offset, length - 1, "latin1");
  };
  header.write(name, 0, 100);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.max(0, Math.floor(at / 1000)), 136, 12);
  header.write(type, 156, 1, "latin1");
  header.write(target, 157, 100);
  header.write("ustar\u000000", 257, 8, "latin1");
  octal(checksumOf(header), 148, 8);
  return header;
}

/** Its own field counts as spaces. */
function checksumOf(header: Buffer): number {
  return header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
}

function textAt(header: Buffer, offset: number, length: number): string {
  const field = header.subarray(offset, offset + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? length : end);
}

function octalAt(header: Buffer, offset: number, length: number): number {
  return Number.parseInt(textAt(header, offset, length).trim() || "0", 8);
}

/** The length counts its own digits too. */
function record(name: string, value: string): string {
  const rest = ` ${name}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + 1;
  while (String(length).length + bytes !== length) length += 1;
  return `${length}${rest}`;
}

function recordsOf(content: Buffer): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < content.length; ) {
    const length = Number.parseInt(content.toString("latin1", at, content.indexOf(0x20, at)), 10);
    if (!(length > 0)) throw invalid("the archive is damaged");
    const [, name = "", value = ""] = /^\d+ ([^=]+)=(.*)\n$/s.exec(content.toString("utf8", at, at + length)) ?? [];
    records.set(name, value);
    at += length;
  }
  return records;
}

function padded(content: Buffer): Buffer {
  const rest = content.length % BLOCK;
  return rest === 0 ? content : Buffer.concat([content, Buffer.alloc(BLOCK - rest)]);
}

function refusal(name: string, reason: string): Error {
  return invalid(`the archive's entry ${shown(name)} is refused: ${reason}`);
}
