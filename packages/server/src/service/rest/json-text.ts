import { randomUUID } from "node:crypto";
import type { JsonValue } from "@bufbuild/protobuf";
import { invalid } from "../rpc/messages/fields.ts";
import { emptyRecord, isRecord } from "./request-json.ts";

const MAX_DEPTH = 64;

/** The JSON of a body or of a line; undefined when there is nothing in it. */
export function parseJson(bytes: Uint8Array): JsonValue | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid("the body is not UTF-8");
  }
  if (text.trim() === "") return undefined;
  const { depth, escapedKeys } = survey(text);
  if (depth > MAX_DEPTH) throw invalid(`the body is nested more than ${MAX_DEPTH} levels deep`);
  try {
    return escapedKeys.length === 0 ? (JSON.parse(text) as JsonValue) : parseEscaped(text, escapedKeys);
  } catch (error) {
    throw invalid(`the body is not JSON: ${escapedKeys.length === 0 ? jsonProblem(error) : UNKNOWN_PROBLEM}`);
  }
}

/** JSON for another reader, of which V8 reads every key as it is. */
export function plainJson(json: JsonValue): string {
  const text = JSON.stringify(json);
  if (survey(text).escapedKeys.length === 0) return text;
  throw invalid("a key has a quote, a backslash or a control character, which REST and binary messages can carry");
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = /[ \t\r\n]*:/y;

/** How many brackets are open at once, and which keys have an escape. Wrong JSON gets an answer too; parsing tells. */
function survey(text: string) {
  let open = 0;
  let depth = 0;
  const escapedKeys: { readonly start: number; readonly end: number }[] = [];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x7b || code === 0x5b) depth = Math.max(depth, ++open);
    if (code === 0x7d || code === 0x5d) open -= 1;
    if (code !== QUOTE) continue;
    const start = index;
    let escaped = false;
    for (index += 1; index < text.length && text.charCodeAt(index) !== QUOTE; index += 1) {
      if (text.charCodeAt(index) !== BACKSLASH) continue;
      escaped = true;
      index += 1;
    }
    COLON.lastIndex = index + 1;
    if (escaped && COLON.test(text)) escapedKeys.push({ start, end: index + 1 });
  }
  return { depth, escapedKeys };
}

/**
 * V8 may read a key with an escape as another key that an earlier text had (nodejs/node#63785): one client could then change
 * what the next one says. So V8 does not get to see such keys: others stand for them, which nobody can guess.
 */
function parseEscaped(text: string, escapedKeys: ReturnType<typeof survey>["escapedKeys"]): JsonValue {
  const prefix = randomUUID();
  const names = new Map<string, string>();
  let plain = "";
  let copied = 0;
  for (const { start, end } of escapedKeys) {
    const standIn = `${prefix}${names.size}`;
    names.set(standIn, JSON.parse(text.slice(start, end)) as string);
    plain += `${text.slice(copied, start)}"${standIn}"`;
    copied = end;
  }
  return renamed(JSON.parse(plain + text.slice(copied)) as JsonValue, names);
}

function renamed(json: JsonValue, names: ReadonlyMap<string, string>): JsonValue {
  if (Array.isArray(json)) return json.map((item) => renamed(item, names));
  if (!isRecord(json)) return json;
  const record = emptyRecord();
  for (const [key, value] of Object.entries(json)) record[names.get(key) ?? key] = renamed(value, names);
  return record;
}

const UNKNOWN_PROBLEM = "unexpected end or character";

/** The parser's sentence without its excerpt of the body, which may hold what no log should. */
function jsonProblem(error: unknown): string {
  const message = error instanceof Error ? error.message : "";
  const position = /at position \d+( \(line \d+ column \d+\))?/.exec(message);
  return position === null ? UNKNOWN_PROBLEM : `unexpected character ${position[0]}`;
}
