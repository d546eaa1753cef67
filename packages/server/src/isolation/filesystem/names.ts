// Names inside the engine are byte strings, one character per byte, because Linux names are bytes. The rules speak of
// text. Valid UTF-8 becomes that text; every other byte becomes a lone surrogate (U+DC80 to U+DCFF), so that two
// different names never look the same to a rule.

const ASCII = /^[\x00-\x7f]*$/;
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text that rules are matched against. */
export function textOf(bytes: string): string {
  if (ASCII.test(bytes)) return bytes;
  const buffer = Buffer.from(bytes, "latin1");
  try {
    return strictUtf8.decode(buffer);
  } catch {
    return escapeInvalid(buffer);
  }
}

/** The inverse of `textOf`: a name or a path as one character per byte. */
export function bytesOf(text: string): string {
  return ASCII.test(text) ? text : encodeText(text).toString("latin1");
}

/** The name as text that everybody can say; undefined for bytes that are no UTF-8. */
export function utf8Of(bytes: string): string | undefined {
  const text = textOf(bytes);
  return text.isWellFormed() ? text : undefined;
}

/** Text in which lone surrogates stand for single bytes, as those bytes. */
export function encodeText(text: string): Buffer {
  const parts = text.split(/([\udc80-\udcff]+)/u);
  return Buffer.concat(
    parts.map((part, index) =>
      index % 2 === 0 ? Buffer.from(part, "utf8") : Buffer.from(part, "utf16le").filter((_, at) => at % 2 === 0),
    ),
  );
}

/** The names of a path, "/src/a.ts" or "src/a.ts", as byte strings; undefined for one that is no path of a workspace. */
export function namesOf(path: string): string[] | undefined {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  return names.includes("..") || path.includes("\0") ? undefined : names.map(bytesOf);
}

function escapeInvalid(buffer: Buffer): string {
  let text = "";
  for (let at = 0; at < buffer.length; ) {
    const length = sequenceLength(buffer, at);
    if (length === 0) {
      text += String.fromCharCode(0xdc00 + buffer[at]!);
      at += 1;
    } else {
      text += buffer.toString("utf8", at, at + length);
      at += length;
    }
  }
  return text;
}

/** How many bytes the valid UTF-8 sequence at this place has; 0 if there is none. */
function sequenceLength(buffer: Buffer, at: number): number {
  const first = buffer[at]!;
  if (first < 0x80) return 1;
  const length =
    first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) === 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (length === 0 || at + length > buffer.length) return 0;
  try {
    strictUtf8.decode(buffer.subarray(at, at + length));
    return length;
  } catch {
    return 0;
  }
}
