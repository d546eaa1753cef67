import { Buffer, isUtf8 } from "node:buffer";

/**
 * The name of a file as a string. A name is bytes on Linux; those that are not UTF-8 become lone surrogates U+DC80..U+DCFF,
 * one per byte, so that two different names never look the same to a rule.
 */
export function decodeName(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = validSequenceLength(bytes, at);
    text += length === 0 ? String.fromCharCode(0xdc00 + bytes[at]!) : bytes.toString("utf8", at, at + length);
    at += Math.max(length, 1);
  }
  return text;
}

/** The bytes of a path below a directory, for the calls that take paths as bytes. */
export function joinBytes(directory: Buffer, name: Buffer): Buffer {
  return Buffer.concat([directory, SLASH, name]);
}

const SLASH = Buffer.from("/");

function validSequenceLength(bytes: Buffer, at: number): number {
  const lead = bytes[at]!;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}
