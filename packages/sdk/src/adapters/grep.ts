import { namesIn } from "@agentfense/permission";
import { SandboxError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { RunResult } from "../model/records.ts";
import { workspacePath } from "../sandbox/parts.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { readAll, sandboxFiles, type ToolEntry, type ToolFiles } from "./tools/files.ts";
import { ToolFailure } from "./tools/tool.ts";

export interface Match {
  /** Relative to the workspace. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

export interface Search {
  readonly pattern: string;
  readonly syntax: "regular expression" | "plain text";
  /** A directory or a file of the workspace. */
  readonly path: string;
}

export interface Findings {
  readonly matches: readonly Match[];
  /** What else there is to know of them, each as half a sentence. */
  readonly remarks: readonly string[];
}

/** Searches the workspace with the sandbox's own grep; where it has none, by reading the files. */
export async function grep(
  sandbox: Pick<Sandbox, "run" | "files">,
  search: Search,
  options: CallOptions,
): Promise<Findings> {
  await sandbox.files.stat(search.path, options);
  const result = await runGrep(sandbox, search, options);
  if (result === undefined) {
    const remark = search.syntax === "plain text" ? undefined : `there is no grep in the sandbox: ${AS_PLAIN_TEXT}`;
    return await findText(sandboxFiles(sandbox.files), { ...search, limit: MOST_MATCHES, remark }, options);
  }
  const matches = matchesIn(result.stdout);
  if (matches.length === 0 && result.exitCode > 1 && result.stderr !== "") throw new ToolFailure(result.stderr.trim());
  const isIncomplete = result.truncated || result.timedOut;
  return { matches, remarks: isIncomplete ? [CUT_SHORT] : [] };
}

/** Undefined where there is no grep that knows these options. */
async function runGrep(
  sandbox: Pick<Sandbox, "run">,
  { pattern, syntax, path }: Search,
  options: CallOptions,
): Promise<RunResult | undefined> {
  const place = `./${namesIn(workspacePath(path)).join("/")}`;
  const syntaxOption = syntax === "plain text" ? "--fixed-strings" : "--extended-regexp";
  // -r in all below, -n with line numbers, -H and names, -I not in binaries, -s without complaints of files, -Z a NUL after names.
  const command = ["grep", "-rnHIsZ", syntaxOption, "--exclude-dir=.git", "-e", pattern, "--", place] as const;
  try {
    const result = await sandbox.run(command, options);
    const isOther = result.exitCode === 127 || (result.exitCode > 1 && /\boption\b|\busage\b/i.test(result.stderr));
    return isOther ? undefined : result;
  } catch (error) {
    if (error instanceof SandboxError && error.code === "PROGRAM_NOT_FOUND") return undefined;
    throw error;
  }
}

function matchesIn(output: string): Match[] {
  return output.split("\n").flatMap((row) => {
    const [, path, line, text] = /^(?:\.\/)?([^\0]+)\0(\d+):(.*)$/s.exec(row) ?? [];
    return path === undefined ? [] : [{ path, line: Number(line), text: text! }];
  });
}

export const AS_PLAIN_TEXT = "this was searched for as plain text";
const CUT_SHORT = "there may be more: the search was cut short";

const LARGEST_FILE_BYTES = 1024 * 1024;
/** How much is read in one search. */
const MOST_BYTES = 256 * 1024 * 1024;
const MOST_FILES = 100_000;
const MOST_MATCHES = 10_000;

interface Limits {
  readonly limit: number;
  /** What is told of the search in any case. */
  readonly remark: string | undefined;
}

/**
 * The same by reading the files, below a path or one. The pattern is the model's and this process is not the sandbox: a
 * regular expression could keep it busy for ever, so only plain text is looked for.
 */
export async function findText(
  files: ToolFiles,
  { pattern, path, limit, remark }: Pick<Search, "pattern" | "path"> & Limits,
  options: CallOptions,
): Promise<Findings> {
  const matches: Match[] = [];
  const found = (isComplete: boolean): Findings => {
    return { matches, remarks: [...(isComplete ? [] : [CUT_SHORT]), ...(remark === undefined ? [] : [remark])] };
  };
  let [bytes, count] = [0, 0];
  for await (const { path: at, size } of filesBelow(files, path, options)) {
    options.signal?.throwIfAborted();
    if (size > LARGEST_FILE_BYTES) continue;
    bytes += size;
    count += 1;
    if (bytes > MOST_BYTES || count > MOST_FILES) return found(false);
    const content = await orNothing(files, readAll(files, at, options));
    if (content === undefined || content.includes(0)) continue;
    for (const [index, text] of new TextDecoder().decode(content).split("\n").entries()) {
      if (!text.includes(pattern)) continue;
      if (matches.length === limit) return found(false);
      matches.push({ path: at, line: index + 1, text });
    }
  }
  return found(true);
}

/** What went away, or may not be looked into, has no files; only the path that was asked for must be there. */
async function* filesBelow(
  files: ToolFiles,
  path: string,
  options: CallOptions,
): AsyncGenerator<ToolEntry, void, undefined> {
  const start = await files.stat(path, options);
  if (start.kind === "file") {
    yield start;
    return;
  }
  const directories = [await files.list(path, options)];
  for (let entries = directories.pop(); entries !== undefined; entries = directories.pop()) {
    for (const entry of entries) {
      if (entry.kind === "file" && entry.readable) yield entry;
      if (entry.kind !== "directory" || /(?:^|\/)\.git$/.test(entry.path)) continue;
      directories.push((await orNothing(files, files.list(entry.path, options))) ?? []);
    }
  }
}

async function orNothing<Found>(files: ToolFiles, looking: Promise<Found>): Promise<Found | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (files.isRefusal(error)) return undefined;
    throw error;
  }
}
