const QUOTE = 0x27;
const ESCAPED_QUOTE = Buffer.from("'\\''");

/** The bytes as one word for any shell, in single quotes. */
export function quote(text: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.of(QUOTE)];
  let start = 0;
  for (let at = text.indexOf(QUOTE); at >= 0; at = text.indexOf(QUOTE, start)) {
    parts.push(text.subarray(start, at), ESCAPED_QUOTE);
    start = at + 1;
  }
  parts.push(text.subarray(start), Buffer.of(QUOTE));
  return Buffer.concat(parts);
}

export function join(...parts: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}
