import type { Candidate, Explanation } from "@agentfense/permission";
import { namesIn } from "@agentfense/permission";
import { UsageError } from "../command-failure.ts";
import { print } from "../output.ts";
import { chooseRules, type RulesValues } from "../rules.ts";
import { type Paint, paintFor, printable, printableSentence } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import { appearanceOf, findEntry, rootEntry, type ViewEntry } from "./workspace-view.ts";

/** `agentfense policy explain` */
export async function explain(
  values: RulesValues & { readonly json?: boolean | undefined },
  directory: string,
  paths: readonly string[],
): Promise<number> {
  const place = await resolveDirectory(directory);
  const { policy } = await chooseRules(values, place);
  const root = rootEntry(place, policy.root);
  const answers = paths.map(workspaceNames).map((names) => ({
    explanation: policy.explain(`/${names.join("/")}`),
    entry: findEntry(root, names),
  }));

  if (values.json) {
    const rows = answers.map(({ explanation, entry }) => ({ ...explanation, ...onDisk(entry) }));
    await print(`${JSON.stringify(rows, undefined, 2)}\n`);
  } else {
    const paint = paintFor(process.stdout, process.env);
    await print(answers.map(({ explanation, entry }) => describe(explanation, entry, paint)).join("\n"));
  }
  return 0;
}

/** The names on the way to a path as people write it: with or without the leading slash, `.` and doubled slashes. */
function workspaceNames(path: string): string[] {
  const names = namesIn(path);
  if (names.includes("..")) throw new UsageError(`a path of the workspace has no ..: ${printable(path)}`);
  return names;
}

function onDisk(entry: ViewEntry | undefined) {
  return entry === undefined
    ? ({ type: "absent", visible: false } as const)
    : ({ type: entry.type, visible: appearanceOf(entry) !== "hidden" } as const);
}

function describe(explanation: Explanation, entry: ViewEntry | undefined, paint: Paint): string {
  const { path, level, candidates } = explanation;
  const lines = [`${printable(path)}  ${paint(level, level)}  ${paint("faint", situation(entry))}`];
  if (candidates.length === 0) lines.push(`  ${explanation.reason}`);
  for (const candidate of candidates) lines.push(`  ${describeCandidate(candidate, paint)}`);
  return `${lines.join("\n")}\n`;
}

function situation(entry: ViewEntry | undefined): string {
  if (entry === undefined) return "(nothing is there)";
  const appearance = appearanceOf(entry);
  if (appearance === "hidden") return `(a ${entry.type} is there; an agent does not see it)`;
  return appearance === "passage"
    ? `(a ${entry.type}, shown only because something visible is below it)`
    : `(a ${entry.type})`;
}

function describeCandidate(candidate: Candidate, paint: Paint): string {
  const { rule, pattern, permission, type, priority, lostBy, ancestor, reason } = candidate;
  const what = `rule ${rule}: ${printable(pattern)} ${permission} (${type}, priority ${priority})`;
  if (lostBy !== undefined) return paint("faint", `loses    ${what}: ${printableSentence(reason)}`);
  return `decides  ${what}${ancestor === undefined ? "" : `, for it hides ${printable(ancestor)} and all below`}`;
}
