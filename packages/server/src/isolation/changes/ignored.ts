import { syscalls } from "@agentfense/fuse";
import { compileRules, LEVEL, type Policy, type Rule } from "@agentfense/permission";
import { textOf } from "../filesystem/names.ts";
import { readAt } from "./binary-patch.ts";
import { openRegular } from "./comparison.ts";

// Which changes are among what git ignores, by the codebase's own .gitignore files: what the agent writes into one decides
// nothing until it is in the codebase. Only how changes are listed depends on it. The patterns may still be an agent's, from
// an earlier sync, so they are matched by the rules' own automaton, whose time is bounded whatever they are.

export const IGNORE_FILE = ".gitignore";
const LARGEST_FILE = 65_536;
const MOST_PATTERNS = 2000;

/** The ignore files from the top down to a directory, and what they said about one above. */
export interface Ignoring {
  /** The nearest first, as the nearest one that has something to say decides. */
  readonly files: readonly IgnoreFile[];
  /** Something here or above is ignored: in this directory it is folded. */
  readonly ignoredIn?: string | undefined;
}

interface IgnoreFile {
  /** Names above what it speaks of. */
  readonly depth: number;
  readonly forDirectories: Policy;
  readonly forOthers: Policy;
}

/** With the ignore file of a directory, if the first of the layers that has one can be read. */
export function entering(ignoring: Ignoring, layers: readonly number[], depth: number): Ignoring {
  if (ignoring.ignoredIn !== undefined) return ignoring;
  for (const directory of layers) {
    const stat = new syscalls.Stat();
    const fd = openRegular({ directory, name: IGNORE_FILE }, stat);
    if (fd < 0) continue;
    const bytes = stat.size > LARGEST_FILE ? undefined : readAt(fd, 0, stat.size);
    syscalls.close(fd);
    if (bytes === undefined) return ignoring;
    return { files: [{ depth, ...readIgnoreFile(bytes.toString("utf8")) }, ...ignoring.files] };
  }
  return ignoring;
}

/** What holds for an entry: `names` are byte strings from the root down. */
export function ignoringAt(ignoring: Ignoring, names: readonly string[], isDirectory: boolean): Ignoring {
  if (ignoring.ignoredIn !== undefined) return ignoring;
  const texts = names.map(textOf);
  for (const { depth, forDirectories, forOthers } of ignoring.files) {
    const { level } = (isDirectory ? forDirectories : forOthers).decide(`/${texts.slice(depth).join("/")}`);
    if (level === LEVEL.none) continue;
    if (level !== IGNORED) return ignoring;
    // A single file is folded with others of its directory.
    return { ...ignoring, ignoredIn: `/${(isDirectory ? texts : texts.slice(0, -1)).join("/")}` };
  }
  return ignoring;
}

const IGNORED = LEVEL.write;

/** As rules: write is ignored, view is not, none is not spoken of. The last line that matches decides. */
function readIgnoreFile(text: string): Pick<IgnoreFile, "forDirectories" | "forOthers"> {
  const lines = text.split("\n", MOST_PATTERNS).flatMap((line, index) => ruleOf(line, index) ?? []);
  return {
    forDirectories: compileRules(lines.map(({ rule }) => rule)),
    forOthers: compileRules(lines.filter(({ onlyDirectories }) => !onlyDirectories).map(({ rule }) => rule)),
  };
}

function ruleOf(line: string, index: number): { readonly rule: Rule; readonly onlyDirectories: boolean } | undefined {
  const [, negation, body = "", slash] =
    /^(!?)(.*?)(\/?)$/.exec(line.replace(/\r$/, "").replace(/(?<!\\)[ \t]+$/, "")) ?? [];
  if (body === "" || line.startsWith("#")) return undefined;
  // Braces are letters to git.
  const pattern = body
    .replace(/^\\([!#])/, "$1")
    .replace(/\\.|[{}]/g, (found) => (found.length > 1 ? found : `\\${found}`));
  const rule: Rule = {
    pattern: pattern.startsWith("!") ? `\\${pattern}` : pattern,
    permission: negation === "" ? "write" : "view",
    type: "glob",
    priority: index,
  };
  try {
    compileRules([rule]);
  } catch {
    return undefined; // git would have it match nothing
  }
  return { rule, onlyDirectories: slash !== "" };
}
