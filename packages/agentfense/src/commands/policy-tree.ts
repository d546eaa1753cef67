import { readlinkSync } from "node:fs";
import { levelName } from "@agentfense/permission";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { decodeName } from "../names.ts";
import { print } from "../output.ts";
import { appearanceOf, rootEntry, tryEntriesOf, type ViewEntry } from "../policy/workspace-view.ts";
import { chooseRules, RULES_HELP, RULES_OPTIONS } from "../rules-option.ts";
import { parseCount } from "../size.ts";
import { type Paint, paintFor, printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

const HELP = `Usage: agentfense policy tree [OPTIONS] [DIR]

Shows DIR (default: where you are) as an agent would see it, each path with its level: write, read, view, or pass for a directory that is there
only because something visible lies below it.

${RULES_HELP}
  --all             also what is hidden (none), for your own eyes
  --depth N         how many levels of directories (default 3, 0 for all)
  --json            one JSON array of { path, type, level, rule, visible }; rule is the index of the deciding rule or -1
  -h, --help        this text

Colours follow NO_COLOR and FORCE_COLOR.
`;

const OPTIONS = {
  ...RULES_OPTIONS,
  all: { type: "boolean" },
  depth: { type: "string" },
  json: { type: "boolean" },
} as const;

export const policyTree: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [directory = ".", ...surplus] = positionals;
  if (surplus.length > 0) throw new UsageError("policy tree takes one directory");
  const depth = parseCount(values.depth ?? "3", "--depth") || Number.POSITIVE_INFINITY;
  const place = await resolveDirectory(directory);
  const { policy } = await chooseRules(values, place);
  const root = rootEntry(place, policy.root);
  const lines = walk(root, { all: values.all === true, depth }, "", "");
  await (values.json ? printJson(lines) : printText(lines, paintFor(process.stdout, process.env)));
  return 0;
}

/** One line of the tree: an entry, or a remark about the directory above it. */
type Line =
  | { readonly entry: ViewEntry; readonly appearance: ReturnType<typeof appearanceOf>; readonly branch: string }
  | { readonly remark: string; readonly branch: string };

interface Extent {
  readonly all: boolean;
  readonly depth: number;
}

function* walk(entry: ViewEntry, extent: Extent, branch: string, indent: string): Generator<Line> {
  const appearance = appearanceOf(entry);
  yield { entry, appearance, branch };
  if (entry.type !== "directory") return;
  const { entries, error } = tryEntriesOf(entry);
  if (error !== undefined) yield { remark: `cannot be read here: ${error}`, branch: `${indent}└── ` };
  const shown = extent.all ? entries : entries.filter((child) => appearanceOf(child) !== "hidden");
  if (shown.length > 0 && extent.depth === 0) {
    yield { remark: `${shown.length} more, see --depth`, branch: `${indent}└── ` };
    return;
  }
  for (const [index, child] of shown.entries()) {
    const last = index === shown.length - 1;
    const below = { all: extent.all, depth: extent.depth - 1 };
    yield* walk(child, below, `${indent}${last ? "└── " : "├── "}`, `${indent}${last ? "    " : "│   "}`);
  }
}

async function printText(lines: Iterable<Line>, paint: Paint): Promise<void> {
  for (const line of lines) {
    if ("remark" in line) {
      await print(`      ${paint("faint", `${line.branch}… ${line.remark}`)}\n`);
      continue;
    }
    const { entry, appearance, branch } = line;
    const level = levelName(entry.scope.level);
    const style = appearance === "passage" ? "faint" : level;
    const column = appearance === "passage" ? "pass" : level;
    await print(
      `${paint(style, column)}${" ".repeat(6 - column.length)}${paint("faint", branch)}${paint(style, label(entry))}\n`,
    );
  }
}

async function printJson(lines: Iterable<Line>): Promise<void> {
  let separator = "[\n";
  for (const line of lines) {
    if ("remark" in line) continue;
    const { path, type, scope } = line.entry;
    const row = { path, type, level: levelName(scope.level), rule: scope.rule, visible: line.appearance !== "hidden" };
    await print(`${separator}  ${JSON.stringify(row)}`);
    separator = ",\n";
  }
  await print("\n]\n");
}

function label(entry: ViewEntry): string {
  if (entry.type === "directory") return entry.path === "/" ? "/" : `${printable(entry.name)}/`;
  if (entry.type !== "symlink") return printable(entry.name);
  return `${printable(entry.name)} -> ${printable(linkTarget(entry.location))}`;
}

function linkTarget(location: Buffer): string {
  try {
    return decodeName(readlinkSync(location, "buffer"));
  } catch {
    return "?";
  }
}
