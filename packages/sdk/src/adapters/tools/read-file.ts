import { z } from "zod";
import { boundary } from "./bounds.ts";
import { declareTool } from "./declaration.ts";
import { ToolFailure } from "./failure.ts";

const DEFAULT_LINES = 2000;

export const readFile = declareTool({
  description: "Reads a text file of the workspace, as it is, or some of its lines.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    offset: z.int().min(1).max(1_000_000_000).optional().describe("The first line, counted from 1; default 1"),
    limit: z.int().min(1).max(1_000_000).optional().describe(`How many lines; default ${DEFAULT_LINES}`),
  }),
  readOnly: true,
  run: async ({ path, offset = 1, limit = DEFAULT_LINES }, { sandbox, maxOutput, signal }) => {
    const window = { first: offset, last: offset + limit - 1, maxCharacters: maxOutput };
    const { text, end } = await readWindow(sandbox.files.readStream(path, { signal }), window);
    if (end.kind === "file") {
      if (text !== "") return text;
      if (end.lines === 0) return "(empty file)";
      throw new ToolFailure(`${path} has only ${end.lines} lines`);
    }
    const rest =
      end.kind === "line" ? `more lines: read on with offset ${end.next}` : `line ${end.line} is cut: it is too long`;
    return `${text}${text.endsWith("\n") ? "" : "\n"}[${rest}]`;
  },
});

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
async function readWindow(content: ReadableStream<Uint8Array>, window: Window): Promise<{ text: string; end: End }> {
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

async function* textOf(content: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for await (const bytes of content) {
    if (bytes.includes(0)) throw new ToolFailure("this is no text file");
    yield decoder.decode(bytes, { stream: true });
  }
  yield decoder.decode();
}
