import type { CommandEvent, Sandbox } from "@agentfense/sdk";
import * as shape from "../../shape.ts";
import { Refusal } from "../envelope.ts";
import { type AioCall, post, type Route } from "../route.ts";
import { fileAt } from "./content.ts";
import { onFile } from "./file-refusal.ts";
import { chosen, entriesBelow, exclusion, meaning, PATTERNS, type TreeEntry } from "./tree.ts";

// Searching in files. The pattern is the client's, so the sandbox's own grep looks for it, in the sandbox's own time.

/** More of a line is not told. */
const LONGEST_LINE = 8192;
const MOST_MATCHES = 10_000;
/** How long all lines together may be. */
const MOST_CHARACTERS = 8 * 1024 * 1024;

const grepInput = shape.object({
  path: shape.string(),
  pattern: shape.string().min(1).max(16_384),
  include: PATTERNS.optional(),
  exclude: PATTERNS.optional(),
  case_insensitive: shape.boolean().default(false),
  fixed_strings: shape.boolean().default(false),
  context_before: shape.int().min(0).max(100).default(0),
  context_after: shape.int().min(0).max(100).default(0),
  max_results: shape.int().min(1).max(MOST_MATCHES).default(500),
  max_file_size: shape.string().default("1M"),
  multiline: shape.boolean().default(false),
  offset: shape.int().min(0).max(100_000).default(0),
  type: shape.string().max(64).optional(),
  recursive: shape.boolean().default(true),
});

type GrepInput = shape.Value<typeof grepInput>;

export const GREP_ROUTES: readonly Route[] = [
  post(
    "v1/file/search",
    shape.object({
      file: shape.string(),
      regex: shape.string().min(1).max(16_384),
      sudo: shape.boolean().default(false),
    }),
    search,
  ),
  post("v1/file/grep", grepInput, grep),
];

async function search(
  call: AioCall,
  { file, regex }: { readonly file: string; readonly regex: string },
): Promise<unknown> {
  const at = fileAt(call, file, "search");
  const { sandbox, signal } = at;
  // Asked first, since a command says less clearly what is wrong with a file.
  await onFile(at, () => expectReadable(sandbox, at.path, signal));
  const request = { pattern: regex, syntax: "regex", flags: [], before: 0, after: 0, limit: MOST_MATCHES } as const;
  const { lines } = await runGrep(sandbox, [at.path], request, signal);
  const found = lines.filter(({ isMatch }) => isMatch);
  return { file, matches: found.map(({ text }) => text), line_numbers: found.map(({ number }) => number) };
}

async function expectReadable(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<void> {
  const reader = sandbox.files.readStream(path, { signal }).getReader();
  await reader.read();
  await reader.cancel();
}

async function grep(call: AioCall, input: GrepInput): Promise<unknown> {
  if (input.multiline) {
    throw new Refusal("multiline search is not supported", { hint: "search for each line by itself" });
  }
  const at = fileAt(call, input.path, "grep");
  const { sandbox, signal } = at;
  const start = await onFile(at, () => sandbox.files.stat(at.path, { signal }));
  if (!start.isDirectory()) await onFile(at, () => expectReadable(sandbox, at.path, signal));
  const files = start.isDirectory()
    ? await chosen(await entriesBelow(at, { recursive: input.recursive }), searched(input))
    : [{ path: at.path }];
  const { offset, max_results, fixed_strings } = input;
  const request = {
    pattern: input.pattern,
    syntax: fixed_strings ? "fixed" : "regex",
    flags: input.case_insensitive ? ["-i"] : [],
    before: input.context_before,
    after: input.context_after,
    limit: offset + max_results + 1,
  } as const;
  const paths = files.map(({ path }) => path);
  const { lines, complete } = await runGrep(sandbox, paths, request, signal);
  const all = matchesIn(lines, request);
  const matches = all.slice(offset, offset + max_results);
  return {
    path: input.path,
    pattern: input.pattern,
    matches,
    match_count: matches.length,
    files_searched: paths.length,
    files_matched: new Set(matches.map(({ file }) => file)).size,
    truncated: !complete || all.length > offset + max_results,
  };
}

function searched(input: GrepInput): (entry: TreeEntry) => boolean {
  const { type, include, exclude } = input;
  const largest = bytesOf(input.max_file_size);
  const ending = type === undefined ? "" : `.${EXTENSIONS[type] ?? type}`;
  const [included, excluded] = [include?.map(meaning), exclude?.map(exclusion) ?? []];
  return ({ relative, stat }) => {
    if (!stat.isFile() || stat.permission === "view" || stat.size > largest || !stat.name.endsWith(ending))
      return false;
    if (relative.split("/").includes(".git") || excluded.some((isExcluded) => isExcluded(relative))) return false;
    return included === undefined || included.some((isIncluded) => isIncluded(relative));
  };
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  python: "py",
  javascript: "js",
  typescript: "ts",
  markdown: "md",
  rust: "rs",
  ruby: "rb",
};

const UNITS: Readonly<Record<string, number>> = { "": 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

function bytesOf(size: string): number {
  const [, number, unit = ""] = /^(\d{1,12})([KMG]?)B?$/i.exec(size.trim()) ?? [];
  if (number === undefined) throw new Refusal(`max_file_size is a number with K, M or G, not ${size}`, { status: 400 });
  return Number(number) * UNITS[unit.toUpperCase()]!;
}

interface GrepRequest {
  readonly pattern: string;
  readonly syntax: "fixed" | "regex";
  readonly flags: readonly string[];
  readonly before: number;
  readonly after: number;
  /** Matches after which nobody looks on. */
  readonly limit: number;
}

interface FoundLine {
  readonly file: string;
  readonly number: number;
  readonly text: string;
  readonly isMatch: boolean;
}

/** The names go in by the input: they are too many for arguments. */
async function runGrep(
  sandbox: Sandbox,
  paths: readonly string[],
  request: GrepRequest,
  signal: AbortSignal,
): Promise<{ readonly lines: readonly FoundLine[]; readonly complete: boolean }> {
  if (paths.length === 0) return { lines: [], complete: true };
  const { flags, before, after, pattern, syntax } = request;
  // A pipe that nobody writes to would be read for ever.
  const options = ["-nHsIZ", "-D", "skip", ...flags, "-B", `${before}`, "-A", `${after}`, "-e", pattern, "--"];
  const execution = sandbox.client.execStream(sandbox.id, ["sh", "-c", SEARCH, "search", syntax, ...options], {
    stdin: paths.join("\0"),
    signal,
  });
  return await collect(execution, request.limit);
}

/** Perl's expressions, which are nearest to Python's; extended ones where the sandbox's grep knows no others. */
const SEARCH = `if [ "$1" = fixed ]; then syntax=-F
elif echo a | grep -qP a 2>/dev/null; then syntax=-P
else syntax=-E; fi
shift
exec xargs -0 grep "$syntax" "$@"`;

async function collect(
  events: AsyncIterable<CommandEvent>,
  limit: number,
): Promise<{ readonly lines: readonly FoundLine[]; readonly complete: boolean }> {
  const decoder = new TextDecoder();
  const lines: FoundLine[] = [];
  let [rest, problem, matches, size] = ["", "", 0, 0];
  for await (const event of events) {
    if (event.kind === "exit") {
      const { exitCode, timedOut } = event.end;
      // xargs: 123 is what grep says when it found nothing, and when it could not search.
      if (lines.length === 0 && exitCode !== 0 && problem !== "") throw new Refusal(problem.trim());
      return { lines, complete: !timedOut };
    }
    if (event.kind === "stderr") {
      problem = (problem + decoderText(event.data)).slice(0, 2000);
      continue;
    }
    const rows = (rest + decoder.decode(event.data, { stream: true })).split("\n");
    // The beginning of a line is enough of it.
    rest = rows.pop()!.slice(0, 2 * LONGEST_LINE);
    for (const row of rows) {
      const line = lineIn(row);
      if (line === undefined) continue;
      lines.push(line);
      if (line.isMatch) matches += 1;
      size += line.text.length;
      if (matches >= limit || size > MOST_CHARACTERS) return { lines, complete: false };
    }
  }
  return { lines, complete: false };
}

function decoderText(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}

function lineIn(row: string): FoundLine | undefined {
  const [, file, number, kind, text] = /^([^\0]+)\0(\d+)([:-])(.*)$/s.exec(row) ?? [];
  if (file === undefined) return undefined;
  return { file, number: Number(number), text: text!.slice(0, LONGEST_LINE), isMatch: kind === ":" };
}

function matchesIn(lines: readonly FoundLine[], { before, after }: GrepRequest) {
  return lines.flatMap((line, at) => {
    if (!line.isMatch) return [];
    const near = ({ file, number }: FoundLine, from: number, to: number) =>
      file === line.file && number >= line.number + from && number <= line.number + to;
    const around = lines.slice(Math.max(0, at - before), at + after + 1);
    const texts = (from: number, to: number) => around.filter((each) => near(each, from, to)).map(({ text }) => text);
    return [
      {
        file: line.file,
        line_number: line.number,
        line_content: line.text,
        context_before: before === 0 ? null : texts(-before, -1),
        context_after: after === 0 ? null : texts(1, after),
      },
    ];
  });
}
