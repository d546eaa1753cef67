import type { JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "./errors.ts";
import { ExactJson, endOfString } from "./exact-json.ts";

const MAX_DEPTH = 64;

/** The JSON of a body or of a line; undefined when there is nothing in it. */
export function parseJson(bytes: Uint8Array): JsonValue | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidArgument("the body is not UTF-8");
  }
  if (text.trim() === "") {
    return undefined;
  }
  const { depth, escapedKeys } = survey(text);
  if (depth > MAX_DEPTH) {
    throw invalidArgument(`the body is nested more than ${MAX_DEPTH} levels deep`);
  }
  try {
    // V8 may read a key with an escape as another key that an earlier text had (nodejs/node#63785): one client could then
    // change what the next one says.
    return escapedKeys ? new ExactJson(text).parse() : (JSON.parse(text) as JsonValue);
  } catch (error) {
    throw invalidArgument(`the body is not JSON: ${jsonProblem(error)}`);
  }
}

const QUOTE = 0x22;

/** How many brackets are open at once, and whether a key has an escape. Wrong JSON gets an answer too; parsing tells. */
function survey(text: string): { readonly depth: number; readonly escapedKeys: boolean } {
  let open = 0;
  let depth = 0;
  let escapedKeys = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      const end = endOfString(text, index);
      escapedKeys ||= end.escaped && isBeforeColon(text, end.index + 1);
      index = end.index;
    } else if (code === 0x7b || code === 0x5b) {
      open += 1;
      depth = Math.max(depth, open);
    } else if (code === 0x7d || code === 0x5d) {
      open -= 1;
    }
  }
  return { depth, escapedKeys };
}

function isBeforeColon(text: string, start: number): boolean {
  let index = start;
  while (/[ \t\r\n]/.test(text.charAt(index))) {
    index += 1;
  }
  return text.charAt(index) === ":";
}

/** The parser's sentence without its excerpt of the body, which may hold what no log should. */
function jsonProblem(error: unknown): string {
  const message = error instanceof Error ? error.message : "";
  const position = /at position \d+( \(line \d+ column \d+\))?/.exec(message);
  return position === null ? "unexpected end or character" : `unexpected character ${position[0]}`;
}
