import { VARIABLE_NAME } from "@agentfense/permission";
import { AgentError } from "../errors.ts";
import { DEFAULT_TIMEOUT_MS } from "../executors/executor.ts";
import { type ExecutionRequest, LANGUAGES, type Language } from "../types.ts";
import { namesOf } from "../workspace/path.ts";

const LONGEST_TIMEOUT_MS = 10 * 60_000;
const MOST_CODE_BYTES = 1024 * 1024;
const MOST_FILES = 100;
const MOST_FILE_BYTES = 16 * 1024 * 1024;
const MOST_VARIABLES = 100;
const MOST_VARIABLE_BYTES = 64 * 1024;

/** A request that makes sense, and that nobody else can change. */
export interface AcceptedRequest {
  readonly code: string;
  readonly language: Language;
  readonly timeoutMs: number;
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  readonly env: Readonly<Record<string, string>>;
  readonly keepsState: boolean;
}

/** Thrown for a request that makes no sense. */
export class RequestProblem extends AgentError {}

/** Copies what the caller gave, looking at each part once: what is checked, shown and run is the same. */
export function acceptRequest(request: ExecutionRequest): AcceptedRequest {
  if (typeof request !== "object" || request === null) throw new RequestProblem("a request is an object");
  const { code, language, timeoutMs = DEFAULT_TIMEOUT_MS, files, env, keepsState = false } = request;
  if (typeof code !== "string") throw new RequestProblem("the code must be a string");
  if (code.includes("\0")) throw new RequestProblem("the code has a NUL character");
  expectAtMost(MOST_CODE_BYTES, Buffer.byteLength(code), "bytes of code");
  if (!LANGUAGES.includes(language)) {
    throw new RequestProblem(`the language ${shown(language)} is not known; there are ${LANGUAGES.join(", ")}`);
  }
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0 && timeoutMs <= LONGEST_TIMEOUT_MS)) {
    const range = `more than 0 and at most ${LONGEST_TIMEOUT_MS}`;
    throw new RequestProblem(`timeoutMs is ${shown(timeoutMs)}; it must be ${range}`);
  }
  if (typeof keepsState !== "boolean") throw new RequestProblem("keepsState must be true or false");
  if (keepsState && language === "command") throw new RequestProblem("a command keeps no state; code of bash does");
  return { code, language, timeoutMs, files: acceptFiles(files), env: acceptVariables(env), keepsState };
}

function acceptFiles(files: ExecutionRequest["files"]): AcceptedRequest["files"] {
  const entries = entriesOf(files, "files");
  expectAtMost(MOST_FILES, entries.length, "files");
  const copied = entries.map(([path, content]): [string, string | Uint8Array] => {
    if (pathNames(path).length === 0) throw new RequestProblem(`${shown(path)} is not the path of a file`);
    if (typeof content === "string") return [path, content];
    if (content instanceof Uint8Array) return [path, Uint8Array.from(content)];
    throw new RequestProblem(`the content of ${shown(path)} must be a string or bytes`);
  });
  const bytes = copied.reduce((sum, [, content]) => sum + Buffer.byteLength(content), 0);
  expectAtMost(MOST_FILE_BYTES, bytes, "bytes of files");
  return Object.freeze(Object.fromEntries(copied));
}

function acceptVariables(env: ExecutionRequest["env"]): AcceptedRequest["env"] {
  const entries = entriesOf(env, "env");
  expectAtMost(MOST_VARIABLES, entries.length, "variables");
  for (const [name, value] of entries) {
    if (!VARIABLE_NAME.test(name)) throw new RequestProblem(`${shown(name)} is not the name of a variable`);
    if (typeof value !== "string" || value.includes("\0")) {
      throw new RequestProblem(`the variable ${name} must be a string without NUL`);
    }
  }
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value), 0);
  expectAtMost(MOST_VARIABLE_BYTES, bytes, "bytes of variables");
  return Object.freeze(Object.fromEntries(entries));
}

function entriesOf<V>(record: Readonly<Record<string, V>> | undefined, name: string): [string, V][] {
  if (record === undefined) return [];
  if (typeof record === "object" && record !== null) return Object.entries(record);
  throw new RequestProblem(`${name} must be an object`);
}

function pathNames(path: string): string[] {
  try {
    return namesOf(path);
  } catch (error) {
    throw new RequestProblem(`a file has an unusable path: ${(error as Error).message}`, { cause: error });
  }
}

function expectAtMost(limit: number, count: number, what: string): void {
  if (count > limit) throw new RequestProblem(`there are ${count} ${what}, at most ${limit} are allowed`);
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : String(value);
}
