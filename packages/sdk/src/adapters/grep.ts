import { SandboxError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { RunResult } from "../model/records.ts";
import type { FileStat, SandboxFiles } from "../sandbox/files.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { namesIn, workspacePath } from "../sandbox/workspace-path.ts";
import { ToolFailure } from "./tools/failure.ts";

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
  /** What else there is to know of them, as half a sentence. */
  readonly remark: string | undefined;
}

/** Searches the workspace with the sandbox's own grep; where it has none, by reading the files. */
export async function grep(
  sandbox: Pick<Sandbox, "run" | "files">,
  search: Search,
  options: CallOptions,
): Promise<Findings> {
  const start = await sandbox.files.stat(search.path, options);
  const result = await runGrep(sandbox, search, options);
  if (result === undefined) return await readAll(sandbox.files, start, search, options);
  const matches = matchesIn(result.stdout);
  if (matches.length === 0 && result.exitCode > 1 && result.stderr !== "") throw new ToolFailure(result.stderr.trim());
  const isIncomplete = result.truncated || result.timedOut;
  return { matches, remark: isIncomplete ? "there may be more: the search was cut short" : undefined };
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

const LARGEST_READ_BYTES = 1024 * 1024;
const MOST_MATCHES = 10_000;

/**
 * The same by the file API. The pattern is the model's and this process is not the sandbox: a regular expression could keep
 * it busy for ever, so only plain text is looked for.
 */
async function readAll(
  files: SandboxFiles,
  start: FileStat,
  { pattern, syntax }: Search,
  options: CallOptions,
): Promise<Findings> {
  const entries = start.isFile()
    ? [start]
    : await files.readdir(start.path, { ...options, recursive: true, withFileTypes: true });
  const matches: Match[] = [];
  for (const entry of entries.filter(isWorthReading)) {
    if (matches.length >= MOST_MATCHES) break;
    const text = await files.readFile(entry.path, { ...options, encoding: "utf8" });
    if (text.includes("\0")) continue;
    const lines = text.split("\n");
    matches.push(...lines.flatMap((line, at) => (line.includes(pattern) ? [matchIn(entry, at + 1, line)] : [])));
  }
  const isLiteral = syntax === "regular expression";
  return {
    matches,
    remark: isLiteral ? "there is no grep in the sandbox: this was searched for as plain text" : undefined,
  };
}

function isWorthReading({ kind, permission, path, size }: FileStat): boolean {
  return kind === "file" && permission !== "view" && size <= LARGEST_READ_BYTES && !namesIn(path).includes(".git");
}

function matchIn({ path }: FileStat, line: number, text: string): Match {
  return { path: namesIn(path).join("/"), line, text };
}
