/** At most so many bytes of UTF-8, and well-formed: half a surrogate pair cannot be percent-encoded. */
export function clipText(text: string, bytes: number): string {
  const encoded = Buffer.from(text.toWellFormed(), "utf8");
  if (encoded.length <= bytes) return text.toWellFormed();
  // A decoder that expects more leaves out a character that is not complete.
  return `${new TextDecoder("utf-8", { ignoreBOM: true }).decode(encoded.subarray(0, bytes), { stream: true })}…`;
}
