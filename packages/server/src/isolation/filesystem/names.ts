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
