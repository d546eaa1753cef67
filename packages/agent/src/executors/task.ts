import { VARIABLE_NAME } from "@agentfense/permission";
import { ExecutorError, PathTraversalError, WorkspaceError } from "../errors.ts";
import type { Language } from "../types.ts";
import { namesOf } from "../workspace/path.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { DEFAULT_TIMEOUT_MS, type ExecutionTask } from "./executor.ts";

const CODE_BYTES = 1024 * 1024;
const FILES_AT_MOST = 1_000;
const TIMEOUT_MS_AT_MOST = 24 * 60 * 60 * 1000;
const VARIABLES_AT_MOST = 1_000;
const VARIABLES_BYTES = 96 * 1024;

/** Refuses what no executor could run, or what this one cannot, before anything is touched. Gives the time that it has. */
export function checkTask(
  task: ExecutionTask,
  languages: ReadonlySet<Language>,
  { keepsState = false } = {},
): { readonly timeoutMs: number } {
  const { code, env = {}, files = {}, language, timeoutMs = DEFAULT_TIMEOUT_MS } = task;
  if (!languages.has(language)) {
    throw invalid(`this executor does not run ${quoted(language)}; it runs ${[...languages].join(", ")}`);
  }
  if (task.keepsState === true && !keepsState) {
    throw new ExecutorError("REFUSED", "this executor keeps no state from one call to the next");
  }
  if (typeof code !== "string") throw invalid("the code is not a string");
  if (code.includes("\0")) throw invalid("the code has a NUL character");
  if (Buffer.byteLength(code) > CODE_BYTES) throw invalid(`the code is longer than ${CODE_BYTES} bytes`);
  if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_AT_MOST)) {
    throw invalid(`timeoutMs is more than 0 and at most ${TIMEOUT_MS_AT_MOST}, not ${timeoutMs}`);
  }
  if (Object.keys(files).length > FILES_AT_MOST) throw invalid(`there are more than ${FILES_AT_MOST} files`);
  checkVariables(env);
  checkPaths(Object.keys(files));
  return { timeoutMs: Math.ceil(timeoutMs) };
}

/** Puts the task's files where the code will find them. */
export async function writeFiles(
  task: ExecutionTask,
  workspace: Pick<Workspace, "writeFile">,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const [path, content] of Object.entries(task.files ?? {})) {
    signal?.throwIfAborted();
    try {
      await workspace.writeFile(path, content);
    } catch (error) {
      throw fileFailure(error);
    }
  }
}

function checkVariables(env: Readonly<Record<string, string>>): void {
  const variables = Object.entries(env);
  if (variables.length > VARIABLES_AT_MOST) throw invalid(`there are more than ${VARIABLES_AT_MOST} variables`);
  let bytes = 0;
  for (const [name, value] of variables) {
    if (!VARIABLE_NAME.test(name)) throw invalid(`${quoted(name)} is no name of a variable`);
    if (typeof value !== "string" || value.includes("\0")) throw invalid(`the variable ${quoted(name)} has no text`);
    bytes += name.length + Buffer.byteLength(value);
  }
  if (bytes > VARIABLES_BYTES) throw invalid(`the variables are longer than ${VARIABLES_BYTES} bytes`);
}

/** What a path is refused for by itself; where links lead is seen when it is written to. */
function checkPaths(paths: readonly string[]): void {
  try {
    for (const path of paths) namesOf(path);
  } catch (error) {
    throw fileFailure(error);
  }
}

function fileFailure(error: unknown): unknown {
  if (!(error instanceof PathTraversalError || error instanceof WorkspaceError)) return error;
  return invalid(`a file cannot be written: ${error.message}`, error);
}

function invalid(message: string, cause?: unknown): ExecutorError {
  return new ExecutorError("INVALID_REQUEST", message, cause === undefined ? {} : { cause });
}

function quoted(text: unknown): string {
  return JSON.stringify(String(text).slice(0, 100));
}
