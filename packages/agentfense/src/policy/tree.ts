import { readlinkSync } from "node:fs";
import { levelName, nameText } from "@agentfense/permission";
import { print } from "../output.ts";
import { chooseRules, type RulesValues } from "../rules.ts";
import { type Paint, paintFor, printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import { appearanceOf, rootEntry, tryEntriesOf, type ViewEntry } from "./workspace-view.ts";

interface TreeValues {
  readonly all?: boolean | undefined;
  /** 0: all. */
  readonly depth?: number | undefined;
  readonly json?: boolean | undefined;
}

const DEFAULT_DEPTH = 3;

/** `agentfense policy tree` */
export async function tree(values: RulesValues & TreeValues, directory = "."): Promise<number> {
  const { depth = DEFAULT_DEPTH } = values;
  const place = await resolveDirectory(directory);
  const { policy } = await chooseRules(values, place);
  const root = rootEntry(place, policy.root);
  const lines = walk(root, { all: values.all === true, depth: depth || Number.POSITIVE_INFINITY }, "", "");
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
    return nameText(readlinkSync(location, "buffer"));
  } catch {
    return "?";
  }
}
