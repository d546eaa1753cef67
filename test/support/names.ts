import { Buffer } from "node:buffer";

/**
 * File names are bytes; tests write them as strings. A byte that is not part of valid UTF-8 is the lone surrogate
 * U+DC00 + byte, so that every name has exactly one spelling and every spelling one name.
 */
export function encodeName(name: string): Buffer {
  if (!/[\ud800-\udfff]/u.test(name)) return Buffer.from(name, "utf8");
  const parts: Buffer[] = [];
  for (const character of name) {
    const code = character.codePointAt(0) ?? 0;
    parts.push(code >= 0xdc80 && code <= 0xdcff ? Buffer.of(code - 0xdc00) : Buffer.from(character, "utf8"));
  }
  return Buffer.concat(parts);
}

export function decodeName(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString("utf8");
  if (!text.includes("\ufffd") || Buffer.from(text, "utf8").equals(buffer)) return text;
  let name = "";
  for (let at = 0; at < buffer.length; ) {
    const length = validSequence(buffer, at);
    name += length > 0 ? buffer.toString("utf8", at, at + length) : String.fromCharCode(0xdc00 + (buffer[at] ?? 0));
    at += Math.max(length, 1);
  }
  return name;
}

/** The length of the valid UTF-8 sequence that starts at `at`; 0 when there is none. */
function validSequence(buffer: Buffer, at: number): number {
  for (let length = 1; length <= 4 && at + length <= buffer.length; length++) {
    const piece = buffer.subarray(at, at + length);
    const text = piece.toString("utf8");
    if ([...text].length === 1 && Buffer.from(text, "utf8").equals(piece)) return length;
  }
  return 0;
}

/** A path as the bytes that Node's fs accepts in place of a string. */
export function joinBytes(directory: Uint8Array, name: Uint8Array): Buffer {
  return Buffer.concat([directory, Buffer.from("/"), name]);
}
