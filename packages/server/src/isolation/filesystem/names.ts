import { namesIn, nameText } from "@agentfense/permission";

// Names inside a mount thread are byte strings, one character per byte, because Linux names are bytes. The rules speak of text.

const ASCII = /^[\x00-\x7f]*$/;

/** The text that rules are matched against. */
export function textOf(bytes: string): string {
  if (ASCII.test(bytes)) return bytes;
  return nameText(Buffer.from(bytes, "latin1"));
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
  const names = namesIn(path);
  return names.includes("..") || path.includes("\0") ? undefined : names.map(bytesOf);
}

// How deep a sandbox can make its tree, also by moving trees into trees. Relative paths get past the kernel's own bound, and
// without one every path that is told of, looked through or removed later costs whatever the agent liked.

/** Directories on the way to an entry, itself included. */
export const LEVELS_LIMIT = 1000;

/** Bytes of a path: sixteen times what one call can name. Programs that build long paths on purpose stop well before. */
export const PATH_LIMIT = 65_536;

/** How far down, and how long, paths can get. */
export interface PathExtent {
  readonly levels: number;
  readonly bytes: number;
}

export function exceedsBounds({ levels, bytes }: PathExtent): boolean {
  return levels > LEVELS_LIMIT || bytes > PATH_LIMIT;
}
