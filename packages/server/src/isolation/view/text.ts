// Names are bytes to the kernel (a string with one character per byte, latin1) and text to callers.

/** The name as text; undefined for bytes that are no UTF-8, which no caller can name. */
export function nameText(bytes: string): string | undefined {
  const text = Buffer.from(bytes, "latin1").toString("utf8");
  return nameBytes(text) === bytes ? text : undefined;
}

export function nameBytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
