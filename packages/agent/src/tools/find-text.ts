import { WorkspaceError } from "../errors.ts";
import type { Workspace, WorkspaceEntry } from "../workspace/workspace.ts";

export interface TextMatch {
  /** Relative to the workspace. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

const LARGEST_FILE_BYTES = 1024 * 1024;
/** Of all that is read in one search. */
const MOST_BYTES = 256 * 1024 * 1024;
const MOST_FILES = 100_000;

/** Searches the text files below a path, or one file, for plain text. */
export async function findText(
  workspace: Workspace,
  path: string,
  options: { readonly pattern: string; readonly limit: number; readonly signal: AbortSignal | undefined },
): Promise<{ readonly matches: readonly TextMatch[]; readonly isComplete: boolean }> {
  const { pattern, limit, signal } = options;
  const matches: TextMatch[] = [];
  let [bytes, files] = [0, 0];
  for await (const file of filesBelow(workspace, path)) {
    signal?.throwIfAborted();
    if (file.size > LARGEST_FILE_BYTES) continue;
    bytes += file.size;
    files += 1;
    if (bytes > MOST_BYTES || files > MOST_FILES) return { matches, isComplete: false };
    for (const match of matchesIn(file.path, (await textOf(workspace, file.path)) ?? "", pattern)) {
      if (matches.length === limit) return { matches, isComplete: false };
      matches.push(match);
    }
  }
  return { matches, isComplete: true };
}

function* matchesIn(path: string, text: string, pattern: string): Generator<TextMatch, void, undefined> {
  if (!text.includes(pattern)) return;
  for (const [at, line] of text.split("\n").entries()) {
    if (line.includes(pattern)) yield { path, line: at + 1, text: line };
  }
}

/** What went away, or may not be looked into, has no files; only the path that was asked for must be there. */
async function* filesBelow(workspace: Workspace, path: string): AsyncGenerator<WorkspaceEntry, void, undefined> {
  const start = path === "" ? undefined : await workspace.stat(path);
  if (start?.kind === "file") {
    yield start;
    return;
  }
  const directories = [await workspace.list(path)];
  for (let entries = directories.pop(); entries !== undefined; entries = directories.pop()) {
    for (const entry of entries) {
      if (entry.kind === "file") yield entry;
      else if (entry.kind === "directory" && !/(?:^|\/)\.git$/.test(entry.path)) {
        directories.push((await orNothing(workspace.list(entry.path))) ?? []);
      }
    }
  }
}

/** Undefined for what is no text. */
async function textOf(workspace: Workspace, path: string): Promise<string | undefined> {
  const text = await orNothing(workspace.readFile(path));
  return text?.includes("\0") ? undefined : text;
}

async function orNothing<Found>(looking: Promise<Found>): Promise<Found | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (error instanceof WorkspaceError) return undefined;
    throw error;
  }
}
