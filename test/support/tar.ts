/** One entry of a tar archive, as wrong as it is given. */
export interface TarEntry {
  readonly name: string | Buffer;
  /** "0" file (default), "1" hard link, "2" symlink, "3" character device, "4" block device, "5" directory, "6" fifo … */
  readonly type?: string;
  readonly content?: string | Buffer;
  readonly linkName?: string;
  /** What the header says, if not the content's length. */
  readonly size?: number | string;
  readonly mode?: string;
  /** Leave the header's checksum wrong. */
  readonly wrongChecksum?: true;
}

const BLOCK = 512;

/** An archive in the ustar format, made by hand: a library would refuse to make what the tests need. */
export function tar(entries: readonly TarEntry[], options: { readonly end?: boolean } = {}): Buffer {
  const end = options.end === false ? [] : [Buffer.alloc(2 * BLOCK)];
  return Buffer.concat([...entries.flatMap(blocksOf), ...end]);
}

function blocksOf(entry: TarEntry): Buffer[] {
  const content = Buffer.from(entry.content ?? "");
  return [headerOf(entry, content.length), content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];
}

function headerOf(entry: TarEntry, length: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;
  Buffer.from(entry.name).copy(header, 0, 0, 100);
  header.write(entry.mode ?? octal(0o644, 8), 100, "latin1");
  header.write(octal(0, 8), 108, "latin1");
  header.write(octal(0, 8), 116, "latin1");
  const size = entry.size ?? length;
  header.write(typeof size === "string" ? size : octal(size, 12), 124, "latin1");
  header.write(octal(0, 12), 136, "latin1");
  header.write("        ", 148, "latin1");
  header.write(entry.type ?? "0", 156, "latin1");
  header.write(entry.linkName ?? "", 157, 100, "utf8");
  header.write("ustar\x0000", 257, "latin1");
  header.write(octal(1, 8), 329, "latin1");
  header.write(octal(3, 8), 337, "latin1");
  const sum = header.reduce((total, byte) => total + byte, entry.wrongChecksum ? 1 : 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** An extended header for the entry that follows: path=…, size=… */
export function pax(records: Readonly<Record<string, string>>): TarEntry {
  const lines = Object.entries(records).map(([name, value]) => {
    const rest = ` ${name}=${value}\n`;
    let length = Buffer.byteLength(rest) + 1;
    while (String(length).length + Buffer.byteLength(rest) !== length) length += 1;
    return `${length}${rest}`;
  });
  return { name: "PaxHeader", type: "x", content: lines.join("") };
}
