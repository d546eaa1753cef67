import { command } from "../command.ts";
import { UsageError } from "../command-failure.ts";
import { option } from "../option.ts";
import { json, preset, rules } from "../shared-options.ts";

/** The directory given to run or mount as `--delta`. */
function delta<const About extends string>(about: About) {
  return option({ name: "delta", value: "DELTA", kind: "directory", about });
}

const IDLE_DELTA = delta("the directory given to run or mount as --delta; it must not be in use");

export const diff = command({
  name: "diff",
  usage: "--delta DELTA [OPTIONS] [DIR [PATH…]]",
  about: `Shows what the delta kept by run or mount changes in the directory it was made over (DIR, if given, must be that one), as a
unified diff; with PATHs (/src/main.ts or src/main.ts), only there and below. Control characters in names and content are
escaped. The delta may be in use.`,
  options: {
    "": [
      delta("the directory given to run or mount as --delta"),
      option({
        name: "all",
        about: `also what the .gitignore files of the directory name; otherwise it is counted, directory by directory,
at the end. With PATHs, --json and --raw all is there`,
      }),
      option({
        name: "stat",
        about: `one line a change instead, with counts of lines; ! marks what the host may run or trust unasked,
I what is ignored`,
      }),
      json("one array of { kind, path, type, size, linesAdded, linesRemoved, sensitive, … } instead"),
      option({ name: "raw", about: "a patch, as git diff --binary has it, for git apply; not to a terminal" }),
    ],
  },
  takes: ["[DIR]", "[PATH…]"],
  completes: "file",
  run: async ({ values, given: [directory], more }) =>
    await (await import("../changes/diff.ts")).diff(values, directory, more),
});

export const apply = command({
  name: "apply",
  usage: "--delta DELTA [OPTIONS] [DIR [PATH…]]",
  about: `Writes what the delta kept by run or mount changes into the directory it was made over (DIR, if given, must be that one);
with PATHs (/src/main.ts or src/main.ts), only there and below. Each entry is checked against the rules of the last run
again: only paths of level write change. What was applied leaves the delta, the rest stays. Exits 1 if something was
refused, held back or failed.`,
  options: {
    "": [
      IDLE_DELTA,
      preset("check against this preset instead of the rules that the delta remembers:"),
      rules("the same with RULES"),
      option({
        name: "all",
        about: `list each change; otherwise applied ones that the .gitignore files of the directory name are counted,
directory by directory. They are applied all the same, unless PATHs leave them out`,
      }),
      option({
        name: "hold-executables",
        about: `leave in the delta what ! marks: what the host may run or trust unasked, such as git hooks, editor
tasks, CI, lock files, package.json, Makefile`,
      }),
      option({ name: "dry-run", about: "say what would happen, and change nothing" }),
      json("{ dryRun, changes } instead"),
    ],
  },
  takes: ["[DIR]", "[PATH…]"],
  completes: "file",
  run: async ({ values, given: [directory], more }) =>
    await (await import("../changes/apply.ts")).apply(values, directory, more),
});

export const merge = command({
  name: "merge",
  usage: "DELTA… [OPTIONS]",
  about: `Brings what several deltas kept by run or mount change together in one directory, three-way: the base is the directory
that each was made over, and what two of them changed in one file is merged line by line, with the result of git merge.
Nothing is written while a conflict is left. What the directory has then leaves the deltas. Exits 1 if there were conflicts
that no strategy settled, or something was refused or failed.`,
  options: {
    "": [
      option({
        name: "into",
        value: "DIR",
        kind: "directory",
        about: "the directory to write into (default: the one that the first DELTA was made over)",
      }),
      option({
        name: "strategy",
        value: "WHOSE",
        words: ["ours", "theirs", "union"],
        about: `settle conflicts: ours takes what DIR or the earlier DELTA has, theirs what the later one has (in text, at the
lines of the conflict), union the lines of both; binary files and deletions it leaves`,
      }),
      option({
        name: "markers",
        about: "write conflicts of text into the files, between <<<<<<< and >>>>>>>; still exits 1",
      }),
      option({
        name: "driver",
        value: "PATTERN=NAME",
        isRepeated: true,
        parse: parseDriver,
        about: `merge what PATTERN matches by another driver: text, json (text that has to stay JSON),
union, whole (a conflict where both changed it), ours, theirs. Usual are json for *.json,
and whole for lock files`,
      }),
      preset("merge by this preset instead of the rules that the deltas remember:"),
      rules("the same with RULES"),
      option({ name: "dry-run", about: "say what would happen, and change nothing" }),
      json("{ dryRun, written, changes, conflicts } instead"),
    ],
  },
  takes: ["DELTA…"],
  completes: "directory",
  run: async ({ values, more }) => await (await import("../changes/merge.ts")).merge(values, more),
});

const DRIVERS = ["text", "json", "union", "whole", "ours", "theirs"] as const;

function parseDriver(text: string, name: string): { pattern: string; driver: (typeof DRIVERS)[number] } {
  const at = text.lastIndexOf("=");
  const driver = DRIVERS.find((known) => known === text.slice(at + 1));
  if (at > 0 && driver !== undefined) return { pattern: text.slice(0, at), driver };
  throw new UsageError(`${name} is PATTERN=NAME, with one of ${DRIVERS.join(", ")}, not ${JSON.stringify(text)}`);
}

export const discard = command({
  name: "discard",
  usage: "--delta DELTA (--all | PATH…)",
  about: `Removes changes from the delta kept by run or mount, so that the codebase shows again there: those at and below each PATH
(/src/main.ts or src/main.ts), or all. Lists what is gone then, what the .gitignore files name as counts. It cannot be
brought back.`,
  options: {
    "": [
      IDLE_DELTA,
      option({ name: "all", about: "everything" }),
      json("{ discarded: [{ kind, path, type, size, sensitive }], failed: [{ path, reason }] } instead"),
    ],
  },
  takes: ["[PATH…]"],
  run: async ({ values, more }) => await (await import("../changes/discard.ts")).discard(values, more),
});
