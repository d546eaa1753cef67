import { command } from "../command.ts";
import { option } from "../option.ts";
import { BOX } from "../run/options.ts";
import { count, json, LIMITS, RULES } from "../shared-options.ts";

const explain = command({
  name: "policy explain",
  summary: "which rule decides about a path, and which ones lost",
  about: `For each PATH of the workspace (/src/main.ts or src/main.ts, relative to DIR): its level, the rule that decides, and the
rules that count for it but lost. A PATH need not exist.`,
  options: { "": [...RULES, json("one JSON array instead")] },
  takes: ["DIR", "PATH", "[PATH…]"],
  usage: "[OPTIONS] DIR PATH…",
  wants: "a directory and one or more paths in it",
  completes: "file",
  run: async ({ values, given: [directory, path], more }) =>
    await (await import("../policy/explain.ts")).explain(values, directory, [path, ...more]),
});

const learn = command({
  name: "policy learn",
  summary: "run a command with everything visible, and print the least rules for it",
  usage: "[OPTIONS] [DIR] -- COMMAND [ARGUMENT…]",
  about: `Runs COMMAND in a sandbox that sees all of DIR (default: where you are), secrets too, and may change all of its copy; what it
changes is thrown away. Then prints the least rules under which it would have worked, as YAML with the reasons: for run,
mount and policy as --rules FILE, or for permissions: in .agentfense.yaml. Many paths of a directory become one pattern. What
looks like a secret is named, not allowed, and hidden where a pattern would show it. COMMAND's own output goes to stderr.

  agentfense policy learn -- npm test > rules.yaml`,
  options: {
    "": [
      option({
        name: "record",
        value: "FILE",
        kind: "file",
        about: "write what was looked at, read and written here, for policy simulate: one { path, level } a line",
      }),
      json("{ exitCode, rules, secrets } instead of the YAML"),
    ],
    Sandbox: BOX,
    Limits: LIMITS,
  },
  takes: ["[DIR]"],
  wants: "one directory",
  completes: "directory",
  passes: "-- COMMAND [ARGUMENT…]",
  notes: "Exit codes: that of the command; 125 when it could not be run; 2 when this command was given wrongly.",
  run: async (call) => await (await import("../policy/learn.ts")).learn(call),
});

const lint = command({
  name: "policy lint",
  summary: "secrets that stay visible, rules that match nothing",
  about: `Walks all of DIR (default: where you are; no link is followed) and says what looks wrong with the rules for it: secrets that
can be read, rules that match nothing, rules of the same rank that contradict each other. A secret is known by its name, or by
what is in it: text files that the rules let an agent read are searched for keys (the first 256 KiB of each; none is printed).
Exits 1 if a secret can be read, or if a part of DIR could not be looked at.`,
  options: {
    "": [
      ...RULES,
      option({ name: "all", about: "remarks too, not only warnings" }),
      json("one JSON array instead, of warnings and remarks"),
    ],
  },
  takes: ["[DIR]"],
  wants: "one directory",
  completes: "directory",
  run: async ({ values, given: [directory] }) =>
    await (await import("../policy/lint.ts")).lintDirectory(values, directory),
});

const simulate = command({
  name: "policy simulate",
  summary: "what rules would have refused of what was done",
  usage: "RULES --against AUDIT",
  about: `Says what rules would have refused of what was done under others. RULES is a JSON or YAML list of { pattern, permission,
type?, priority? }; AUDIT is what policy learn --record wrote, or events as audit list --json prints them: of these the
refused operations count (permission_denied), for other events tell no paths. Exits 1 if something would have been refused.`,
  options: {
    "": [
      option({ name: "against", value: "AUDIT", kind: "file", about: "the file; - is standard input" }),
      json("{ operations, refused: [{ path, needs, has, rule, pattern }] } instead"),
    ],
  },
  takes: ["RULES"],
  wants: "one file of rules",
  completes: "file",
  run: async ({ values, given: [file] }) => await (await import("../policy/simulate.ts")).simulate(values, file),
});

const tree = command({
  name: "policy tree",
  summary: "a directory as an agent would see it, with the level of each path",
  about: `Shows DIR (default: where you are) as an agent would see it, each path with its level: write, read, view, or pass for a
directory that is there only because something visible lies below it.`,
  options: {
    "": [
      ...RULES,
      option({ name: "all", about: "also what is hidden (none), for your own eyes" }),
      option({
        name: "depth",
        value: "N",
        about: "how many levels of directories (default 3, 0 for all)",
        parse: count,
      }),
      json("one JSON array of { path, type, level, rule, visible }; rule is the index of the deciding rule or -1"),
    ],
  },
  takes: ["[DIR]"],
  wants: "one directory",
  completes: "directory",
  notes: "Colours follow NO_COLOR and FORCE_COLOR.",
  run: async ({ values, given: [directory] }) => await (await import("../policy/tree.ts")).tree(values, directory),
});

export const POLICY = [explain, learn, lint, simulate, tree];
