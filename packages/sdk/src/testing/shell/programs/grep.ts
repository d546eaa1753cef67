import { readAll } from "../../commands/stdio.ts";
import { FileFault } from "../../files/file-fault.ts";
import { joined } from "../../files/paths.ts";
import {
  asBytes,
  Complaint,
  complain,
  linesOf,
  type Program,
  type ProgramRun,
  parseOptions,
  pathOf,
  printBytes,
} from "../program.ts";

interface Source {
  /** As it is printed. */
  readonly name: string;
  readonly text: string;
}

/** Fixed texts and simple patterns, in files, in all below a directory, or in the input. */
export const grep: Program = async (run) => {
  const { flags, values, operands } = parseOptions(run.args, { letters: "rRnliLvcqEFhHwsa", withValue: "e" });
  const [first, ...rest] = operands;
  const pattern = values.get("e") ?? first;
  if (pattern === undefined) throw new Complaint("usage: grep [OPTION]... PATTERNS [FILE]...", 2);
  const paths = values.has("e") ? operands : rest;
  const recursive = flags.has("r") || flags.has("R");
  const expression = patternOf(pattern, flags);
  const state: Search = { run, recursive, quiet: flags.has("s"), failed: false };
  const isNamed = !flags.has("h") && (flags.has("H") || recursive || paths.length > 1);
  let found = false;
  for await (const { name, text } of sourcesOf(state, paths)) {
    const lines = linesOf(text).flatMap((line, at) =>
      expression.test(line) === flags.has("v") ? [] : [{ line, number: at + 1 }],
    );
    if (lines.length > 0) found = true;
    if (found && flags.has("q")) return 0;
    const prefix = isNamed ? `${asBytes(name)}:` : "";
    if (flags.has("c")) await printBytes(run, `${prefix}${lines.length}\n`);
    else if (flags.has("l")) await printBytes(run, lines.length > 0 ? `${asBytes(name)}\n` : "");
    else {
      const shown = lines.map(({ line, number }) => `${prefix}${flags.has("n") ? `${number}:` : ""}${line}\n`);
      await printBytes(run, shown.join(""));
    }
  }
  if (state.failed) return 2;
  return found ? 0 : 1;
};

interface Search {
  readonly run: ProgramRun;
  readonly recursive: boolean;
  readonly quiet: boolean;
  failed: boolean;
}

async function* sourcesOf(search: Search, paths: readonly string[]): AsyncGenerator<Source> {
  const { run, recursive } = search;
  if (paths.length === 0 && !recursive) {
    yield { name: "(standard input)", text: (await readAll(run.stdio.stdin)).toString("latin1") };
    return;
  }
  // Without a path what is here is searched, and named without "./".
  if (paths.length === 0) yield* below(search, run.state.cwd, "");
  for (const path of paths) yield* at(search, path === "" ? "" : pathOf(run, path), path);
}

async function* at(search: Search, path: string, name: string): AsyncGenerator<Source> {
  const { run, recursive } = search;
  try {
    const { kind } = run.files.stat(path);
    if (kind !== "directory") yield { name, text: Buffer.from(run.files.read(path)).toString("latin1") };
    else if (recursive) yield* below(search, path, name.replace(/\/$/, ""));
    else throw new FileFault("EISDIR");
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    search.failed = true;
    if (!search.quiet) await complain(run, `${name}: ${error.message}`);
  }
}

async function* below(search: Search, path: string, name: string): AsyncGenerator<Source> {
  for (const entry of search.run.files.list(path)) {
    const own = entry.path.slice(entry.path.lastIndexOf("/") + 1);
    // Links are not followed below what was named.
    if (entry.kind !== "symlink") yield* at(search, joined(path, own), name === "" ? own : `${name}/${own}`);
  }
}

function patternOf(pattern: string, flags: ReadonlySet<string>): RegExp {
  const bytes = asBytes(pattern);
  const source = flags.has("F") ? bytes.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : flags.has("E") ? bytes : basic(bytes);
  try {
    return new RegExp(flags.has("w") ? `\\b(?:${source})\\b` : source, flags.has("i") ? "i" : "");
  } catch {
    throw new Complaint("Invalid regular expression", 2);
  }
}

/** In a basic pattern these mean something with a backslash only. */
function basic(pattern: string): string {
  return pattern.replace(/\\?[(){}|+?]/g, (sign) => (sign.length === 2 ? sign.slice(1) : `\\${sign}`));
}
