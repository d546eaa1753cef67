import { RuntimeError } from "../runtime-error.ts";

// The tar format: ustar with the extended headers of POSIX, and when reading also those of GNU.

const BLOCK = 512;
/** The longest name or list of records that an extended header may bring: it is held in memory. */
const MOST_EXTENDED_BYTES = 1024 * 1024;

/** What an entry is, as its header has it. */
export const TAR_TYPES = {
  "0": "file",
  "1": "hard link",
  "2": "symlink",
  "3": "character device",
  "4": "block device",
  "5": "directory",
  "6": "fifo",
  "7": "contiguous file",
} as const;

export type TarType = (typeof TAR_TYPES)[keyof typeof TAR_TYPES];

export interface TarEntry {
  /** Undefined: one that is in no standard. */
  readonly type: TarType | undefined;
  /** Names are bytes: whether they are text is for others to see. */
  readonly name: Uint8Array;
  /** Where a link leads. */
  readonly target: Uint8Array;
  readonly mode: number;
  readonly size: number;
}

export type TarPiece = { readonly entry: TarEntry } | { readonly data: Uint8Array };

/** The entries of an archive, each followed by its content. */
export async function* readTar(archive: AsyncIterable<Uint8Array>): AsyncGenerator<TarPiece> {
  await using bytes = new ByteReader(archive);
  let extended: Extension = {};
  for (;;) {
    const block = await bytes.block();
    if (block === undefined) return;
    // One or more of them are at the end, and between archives that were put together.
    if (block.every((byte) => byte === 0)) continue;
    const { flag, ...header } = decodeHeader(block);
    const extend = EXTENSIONS[flag];
    if (extend !== undefined) {
      if (header.size > MOST_EXTENDED_BYTES) throw damaged("an extended header is too large");
      extended = { ...extended, ...extend(await bytes.exactly(header.size)) };
      await bytes.exactly(paddingOf(header.size));
      continue;
    }
    const entry = withType(flag, { ...header, ...extended });
    extended = {};
    yield { entry };
    // What stands in a directory's size is no content.
    if (entry.type === "directory") continue;
    for (let left = entry.size; left > 0; ) {
      const data = await bytes.some(left);
      left -= data.length;
      yield { data };
    }
    await bytes.exactly(paddingOf(entry.size));
  }
}

/** Old programs told a directory by the end of its name alone. */
function withType(flag: string, entry: Omit<TarEntry, "type">): TarEntry {
  const type = (TAR_TYPES as Readonly<Record<string, TarType>>)[flag];
  return { ...entry, type: type === "file" && entry.name.at(-1) === 0x2f ? "directory" : type };
}

type Extension = Partial<Pick<TarEntry, "name" | "target" | "size">>;

/** What a header says about the entry after it. One for all entries that follow has nothing that we ask for. */
const EXTENSIONS: Readonly<Record<string, (content: Buffer) => Extension>> = {
  x: decodeRecords,
  g: () => ({}),
  L: (content) => ({ name: upToNul(content) }),
  K: (content) => ({ target: upToNul(content) }),
};

/** Records of POSIX: "18 path=some/name\n", where the number is the length of the whole. */
function decodeRecords(content: Buffer): Extension {
  const values = new Map<string, Buffer>();
  for (let start = 0; start < content.length; ) {
    const space = content.indexOf(" ", start);
    const length = decimal(content.subarray(start, space === -1 ? content.length : space));
    const record = content.subarray(space + 1, start + length);
    const equals = record.indexOf("=");
    if (space === -1 || start + length > content.length || equals === -1 || record.at(-1) !== 0x0a) {
      throw damaged("an extended header has no records");
    }
    values.set(record.toString("latin1", 0, equals), record.subarray(equals + 1, -1));
    start += length;
  }
  const given = (key: string): Buffer | undefined => (values.get(key)?.length === 0 ? undefined : values.get(key));
  const [name, target, size] = ["path", "linkpath", "size"].map(given);
  return { ...(name && { name }), ...(target && { target }), ...(size && { size: decimal(size) }) };
}

function decodeHeader(block: Buffer): Omit<TarEntry, "type"> & { readonly flag: string } {
  if (checksumOf(block) !== numberIn(block.subarray(148, 156))) throw damaged("a header's checksum is wrong");
  const magic = block.toString("latin1", 257, 265);
  const isUstar = magic.startsWith("ustar\0");
  if (!isUstar && magic !== "ustar  \0") throw damaged("a header is of no known format");
  const prefix = isUstar ? upToNul(block.subarray(345, 500)) : block.subarray(0, 0);
  const last = upToNul(block.subarray(0, 100));
  const name = prefix.length === 0 ? last : Buffer.concat([prefix, Buffer.from("/"), last]);
  const flag = block[156] === 0 ? "0" : String.fromCharCode(block[156]!);
  const [mode, size] = [numberIn(block.subarray(100, 108)), numberIn(block.subarray(124, 136))];
  return { flag, name, target: upToNul(block.subarray(157, 257)), mode, size };
}

/** Digits to the base of eight, or when they would not suffice a number in bytes behind one with the highest bit set. */
function numberIn(field: Buffer): number {
  const [first = 0, ...rest] = field;
  const value =
    first === 0x80
      ? rest.reduce((sum, byte) => sum * 256 + byte, 0)
      : Number(`0o0${field.toString("latin1").replace(/^ +|[ \0].*$/gs, "")}`);
  if (!Number.isSafeInteger(value)) throw damaged("a header has a number that is none");
  return value;
}

function decimal(digits: Buffer): number {
  const text = digits.toString("latin1");
  if (!/^\d{1,15}$/.test(text)) throw damaged("an extended header has a number that is none");
  return Number(text);
}

/** The sum of a header's bytes, with spaces where the sum itself stands. */
function checksumOf(block: Buffer): number {
  return block.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 0x20 : byte), 0);
}

function upToNul(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return end === -1 ? field : field.subarray(0, end);
}

function damaged(why: string): RuntimeError {
  return new RuntimeError("INVALID_ARGUMENT", "the archive is damaged", { cause: new Error(why) });
}

/** Takes bytes from a stream in the amounts that are wanted. */
class ByteReader implements AsyncDisposable {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** Undefined at the end. */
  async block(): Promise<Buffer | undefined> {
    return (await this.#fill()) ? await this.exactly(BLOCK) : undefined;
  }

  async exactly(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = count; left > 0; left -= parts.at(-1)!.length) parts.push(await this.some(left));
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  /** At least one byte, and at most so many. */
  async some(most: number): Promise<Buffer> {
    if (!(await this.#fill())) throw damaged("it ends too early");
    const taken = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done) return false;
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks.return?.();
  }
}

/** An entry to be written. */
export interface WrittenEntry {
  readonly type: "file" | "directory" | "symlink";
  readonly name: string;
  readonly target?: string;
  readonly mode: number;
  readonly size?: number;
  readonly modifiedAtMs: number;
}

/** What an archive ends with. */
export const TAR_END: Uint8Array = Buffer.alloc(2 * BLOCK);

const FLAGS = { file: "0", directory: "5", symlink: "2" } as const;
const MOST_OCTAL_SIZE = 0o77777777777;

/** The header of an entry, after an extended one when a name is long or not ASCII, or the content is beyond 8 GiB. */
export function tarHeader({ type, name, target = "", mode, size = 0, modifiedAtMs }: WrittenEntry): Uint8Array {
  const path = type === "directory" ? name.replace(/\/$/, "") : name; // its type says what it is
  const records = [
    ...(fits(path) ? [] : [record("path", path)]),
    ...(fits(target) ? [] : [record("linkpath", target)]),
    ...(size > MOST_OCTAL_SIZE ? [record("size", String(size))] : []),
  ].join("");
  const header = encodeHeader({ flag: FLAGS[type], name: path, target, mode, size, modifiedAtMs });
  if (records === "") return header;
  const content = Buffer.from(records);
  return Buffer.concat([
    encodeHeader({ flag: "x", name: "PaxHeader", target: "", mode: 0o644, size: content.length, modifiedAtMs }),
    content,
    tarPadding(content.length),
    header,
  ]);
}

/** What fills the last block after a content of this size. */
export function tarPadding(size: number): Uint8Array {
  return TAR_END.subarray(0, paddingOf(size));
}

function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function fits(name: string): boolean {
  return name.length <= 100 && Buffer.byteLength(name) === name.length;
}

function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  // The number counts its own digits, of which there may be one more because of them.
  const digits = String(bytes + String(bytes).length).length;
  return `${bytes + digits}${rest}`;
}

function encodeHeader(entry: Required<Omit<WrittenEntry, "type">> & { readonly flag: string }): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, digits: number): void => {
    block.write(value.toString(8).padStart(digits, "0"), offset, digits, "latin1");
  };
  block.write(entry.name, 0, 100);
  octal(entry.mode & 0o7777, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(Math.min(entry.size, MOST_OCTAL_SIZE), 124, 11);
  octal(Math.max(0, Math.floor(entry.modifiedAtMs / 1000)), 136, 11);
  block.write(entry.flag, 156, "latin1");
  block.write(entry.target, 157, 100);
  block.write("ustar\x0000", 257, "latin1");
  octal(0, 329, 7);
  octal(0, 337, 7);
  octal(checksumOf(block), 148, 6);
  block.write("\0 ", 154, "latin1");
  return block;
}
