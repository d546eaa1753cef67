import { z } from "zod";
import type { ChangeCounts, RunResult } from "../../model/records.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Turns } from "../../turns.ts";
import { AS_PLAIN_TEXT, findText, grep, type Match } from "../grep.ts";
import { clip, keepEnds, keepLines } from "./bounds.ts";
import { readWindow, replaceText, type ToolEntry, type ToolFiles } from "./files.ts";
import { declareTool, type ToolDeclaration, type ToolEffects, ToolFailure } from "./tool.ts";

// The tools with which models work in a sandbox: what they are called and told with, and what the adapters, MCP and the agent
// layer do alike. The Python SDK says the same words.

/** What the tools need of a sandbox. */
export type ToolSandbox = Pick<Sandbox, "run" | "files" | "changes">;

/** What tools that look at files and write them work with. */
export interface FileToolContext {
  readonly files: ToolFiles;
  /** Absent where the files are not those of a sandbox: then a search is one for plain text. */
  readonly sandbox?: ToolSandbox | undefined;
  /** Characters kept of what is told. */
  readonly maxOutput: number;
  readonly turns: Turns;
  readonly signal: AbortSignal | undefined;
}

export type SandboxToolContext = FileToolContext & { readonly sandbox: ToolSandbox };

const LOOKS: ToolEffects = { readOnly: true, destructive: false, openWorld: false };
const WRITES: ToolEffects = { readOnly: false, destructive: true, openWorld: false };

const SHELL_TIMEOUT_MS = 60_000;

export const SHELL = {
  name: "shell",
  description:
    "Runs a command line in the shell of the sandbox and gives its output and exit code. It starts in /workspace, " +
    "where the project is; every call is a shell of its own. There may be no network, and some files cannot be seen or written.",
  input: z.strictObject({
    command: z.string().min(1).describe("The command line"),
    timeout_ms: z
      .int()
      .min(1)
      .max(600_000)
      .optional()
      .describe(`Ended after this many milliseconds; default ${SHELL_TIMEOUT_MS}`),
    workdir: z.string().min(1).optional().describe("Where to run it, relative to /workspace; default /workspace"),
  }),
  risk: "assessed",
  effects: { readOnly: false, destructive: true, openWorld: true },
} satisfies ToolDeclaration<z.ZodObject>;

export const shell = declareTool({
  ...SHELL,
  handler: async ({ command, timeout_ms, workdir }, { sandbox, maxOutput, signal }: SandboxToolContext) => {
    const timeoutMs = timeout_ms ?? SHELL_TIMEOUT_MS;
    const result = await sandbox.run(command, { timeoutMs, workdir, signal });
    return { text: outputText(result, { timeoutMs, maxOutput }) };
  },
});

interface OutputOptions {
  /** How long it had, or took. */
  readonly timeoutMs: number;
  readonly maxOutput: number;
  /** Instead of how it ended. */
  readonly remark?: string | undefined;
}

/** What a command printed and how it ended. */
export function outputText(
  result: Pick<RunResult, "stdout" | "stderr" | "truncated" | "outOfMemory" | "timedOut" | "success" | "exitCode">,
  { timeoutMs, maxOutput, remark }: OutputOptions,
): string {
  const { stdout, stderr, truncated, outOfMemory, timedOut, success, exitCode } = result;
  const printed = [stdout.trimEnd(), stderr === "" ? "" : `[stderr]\n${stderr.trimEnd()}`];
  const ending = [
    ...(truncated ? ["[some output was beyond the limit and is lost]"] : []),
    ...(outOfMemory ? ["[it ran out of memory]"] : []),
    ...(timedOut ? [`[ended after ${timeoutMs} ms: its time was up]`] : []),
    ...(success || timedOut ? [] : [`[exit code ${exitCode}]`]),
  ];
  const output = keepEnds(printed.filter((part) => part !== "").join("\n"), maxOutput);
  const parts = [output, ...(remark === undefined ? ending : [remark])];
  return parts.filter((part) => part !== "").join("\n") || "(no output)";
}

const READ_LINES = 2000;

const readFile = declareTool({
  name: "read_file",
  description: "Reads a text file of the workspace, as it is, or some of its lines.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    offset: z.int().min(1).max(1_000_000_000).optional().describe("The first line, counted from 1; default 1"),
    limit: z.int().min(1).max(1_000_000).optional().describe(`How many lines; default ${READ_LINES}`),
  }),
  risk: "SAFE",
  effects: LOOKS,
  handler: async ({ path, offset = 1, limit = READ_LINES }, { files, maxOutput, signal }: FileToolContext) => {
    const window = { first: offset, last: offset + limit - 1, maxCharacters: maxOutput };
    const { text, end } = await readWindow(files.read(path, { signal }), window);
    if (end.kind === "file") {
      if (text !== "") return { text };
      if (end.lines === 0) return { text: "(empty file)" };
      throw new ToolFailure(`${path} has only ${end.lines} lines`);
    }
    const rest =
      end.kind === "line" ? `more lines: read on with offset ${end.next}` : `line ${end.line} is cut: it is too long`;
    return { text: `${text}${text.endsWith("\n") ? "" : "\n"}[${rest}]` };
  },
});

const writeFile = declareTool({
  name: "write_file",
  description:
    "Writes a file of the workspace: a new one, with the directories on its way, or all of one that is there.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    content: z.string().describe("All that the file is to hold"),
  }),
  risk: "LOW",
  effects: WRITES,
  handler: async ({ path, content }, { files, turns, signal }: FileToolContext) => {
    await turns.take(() => files.write(path, content, { signal }));
    return { text: `wrote ${path}` };
  },
});

const editFile = declareTool({
  name: "edit_file",
  description:
    "Replaces text in a file of the workspace. The old text must be there exactly as given, white space included, and only once " +
    "unless all are to be replaced.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    old_text: z.string().min(1).describe("What to replace, with enough around it to be the only such place"),
    new_text: z.string().describe("What to put there"),
    replace_all: z.boolean().optional().describe("Replace every such place; default false"),
  }),
  risk: "LOW",
  effects: WRITES,
  handler: async (
    { path, old_text: oldText, new_text: newText, replace_all: all = false },
    { files, turns, signal }: FileToolContext,
  ) => {
    const count = await turns.take(() => replaceText(files, path, { oldText, newText, all }, { signal }));
    return { text: count === 1 ? `edited ${path}` : `edited ${path} in ${count} places` };
  },
});

const listFiles = declareTool({
  name: "list_files",
  description: "Lists a directory of the workspace. Directories end in a slash.",
  input: z.strictObject({
    path: z.string().min(1).optional().describe("Relative to /workspace; default /workspace itself"),
    recursive: z.boolean().optional().describe("With all that is below; default false"),
  }),
  risk: "SAFE",
  effects: LOOKS,
  handler: async ({ path = "/", recursive }, { files, maxOutput, signal }: FileToolContext) => {
    const lines = (await files.list(path, { recursive, signal })).map(
      (entry) => entry.path + ENDINGS[entry.kind](entry),
    );
    return { text: lines.length === 0 ? "(nothing)" : keepLines(lines, maxOutput, "list a directory below") };
  },
});

const ENDINGS = {
  file: () => "",
  directory: () => "/",
  symlink: ({ target }: ToolEntry) => (target === undefined ? "@" : ` -> ${target}`),
};

const SEARCH_RESULTS = 100;
const LINE_CHARACTERS = 500;

const search = declareTool({
  name: "search",
  description:
    "Searches the text files of the workspace for a regular expression (POSIX extended) and gives path:line:text of each match.",
  input: z.strictObject({
    pattern: z.string().min(1).describe("What to look for within a line"),
    path: z.string().min(1).optional().describe("A directory or file, relative to /workspace; default all"),
    max_results: z.int().min(1).max(10_000).optional().describe(`How many matches to give; default ${SEARCH_RESULTS}`),
  }),
  risk: "SAFE",
  effects: LOOKS,
  handler: async ({ pattern, path = "/", max_results: limit = SEARCH_RESULTS }, context: FileToolContext) => {
    const { sandbox, files, maxOutput, signal } = context;
    const { matches, remarks } =
      sandbox === undefined
        ? await findText(files, { pattern, path, limit, remark: AS_PLAIN_TEXT }, { signal })
        : await grep(sandbox, { pattern, path, syntax: "regular expression" }, { signal });
    const more = matches.length - limit;
    const lines = [
      ...(matches.length === 0 ? ["(no matches)"] : []),
      ...matches
        .slice(0, limit)
        .map(({ path: at, line, text }: Match) => `${at}:${line}:${clip(text, LINE_CHARACTERS)}`),
      ...(more > 0 ? [`[${more} more matches]`] : []),
      ...remarks.map((remark) => `[${remark}]`),
    ];
    return { text: keepLines(lines, maxOutput, "search for less") };
  },
});

export const changes = declareTool({
  name: "changes",
  description: "Lists what was changed in the workspace so far and has not been handed over.",
  input: z.strictObject({}),
  risk: "SAFE",
  effects: LOOKS,
  handler: async (_, { sandbox, maxOutput, signal }: SandboxToolContext) => {
    const lines: string[] = [];
    for await (const { kind, path, oldPath, folded } of sandbox.changes({ fold: true, signal })) {
      if (folded !== undefined) lines.push(`ignored by git in ${path.slice(1) || "."}: ${countsText(folded)}`);
      else lines.push(`${kind} ${path.slice(1)}${oldPath === "" ? "" : ` (was ${oldPath.slice(1)})`}`);
    }
    return { text: lines.length === 0 ? "(nothing)" : keepLines(lines, maxOutput, "these are the first") };
  },
});

/** "200 added, 3 deleted" */
function countsText(counts: ChangeCounts): string {
  const kinds = ["added", "modified", "deleted", "renamed"] as const;
  return kinds.flatMap((kind) => (counts[kind] === 0 ? [] : [`${counts[kind]} ${kind}`])).join(", ");
}

/** Those that need files and nothing else. */
export const FILE_TOOLS = [readFile, writeFile, editFile, listFiles, search] as const;
