import { boundary } from "./bounds.ts";
import { ToolFailure } from "./tool.ts";

interface Window {
  readonly first: number;
  readonly last: number;
  readonly maxCharacters: number;
}

/** Why the text ends: with the file, before another line, or inside one. */
type End =
  | { readonly kind: "file"; readonly lines: number }
  | { readonly kind: "line"; readonly next: number }
  | { readonly kind: "inside"; readonly line: number };

/** Some lines of a file, of which no more is fetched and kept than that takes. */
export async function readWindow(
  content: AsyncIterable<Uint8Array>,
  window: Window,
): Promise<{ text: string; end: End }> {
  let text = "";
  let line = 1;
  let isAtStart = true;
  for await (const piece of textOf(content)) {
    for (let from = 0; from < piece.length; ) {
      if (line > window.last) return { text, end: { kind: "line", next: line } };
      const newline = piece.indexOf("\n", from);
      const to = newline === -1 ? piece.length : newline + 1;
      if (line >= window.first) {
        const room = window.maxCharacters - text.length;
        if (to - from > room) {
          // A line that would fit in an answer of its own is left for the next one.
          if (text !== "" && isAtStart) return { text, end: { kind: "line", next: line } };
          return { text: text + piece.slice(from, boundary(piece, from + room)), end: { kind: "inside", line } };
        }
        text += piece.slice(from, to);
      }
      isAtStart = newline !== -1;
      if (isAtStart) line += 1;
      from = to;
    }
  }
  return { text, end: { kind: "file", lines: isAtStart ? line - 1 : line } };
}

async function* textOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for await (const bytes of content) {
    if (bytes.includes(0)) throw new ToolFailure("this is no text file");
    yield decoder.decode(bytes, { stream: true });
  }
  yield decoder.decode();
}
