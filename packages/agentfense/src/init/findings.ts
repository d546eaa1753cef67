import { join } from "node:path";
import { compileRules, getPreset, type LintFinding, lint, type Rule, type TreeEntry } from "@agentfense/permission";
import { readFoundTextFile } from "@agentfense/sdk/project";
import { BUILD_SYSTEMS, type BuildSystem, plainOutput } from "./build-systems.ts";

/** A build system, and the patterns of the places it writes to. */
export interface Outputs {
  readonly system: string;
  readonly patterns: readonly string[];
}

/** Projects in one another are usual, hundreds of them are somebody's test data. */
const MOST_PROJECTS = 200;
/** From so many places of one name on, one pattern for all is easier to read. */
const MANY_PLACES = 4;

/** What builds write, by the build systems found. */
export async function findOutputs(directory: string, entries: readonly TreeEntry[]): Promise<Outputs[]> {
  const files = new Set(entries.filter(({ type }) => type === "file").map(({ path }) => path));
  const directories = new Set(entries.filter(({ type }) => type === "directory").map(({ path }) => path));
  const found: Outputs[] = [];
  for (const system of BUILD_SYSTEMS) {
    const projects = projectsOf(system, files);
    if (projects.length === 0) continue;
    const places = new Set<string>();
    for (const project of projects) {
      for (const name of system.outputs) if (directories.has(`${project}/${name}`)) places.add(`${project}/${name}`);
      for (const name of await namedOutputs(directory, project, system, files)) places.add(`${project}/${name}`);
    }
    found.push({ system: system.name, patterns: patternsFor([...places]) });
  }
  return withoutRepeats(found);
}

/** The directories that have a marker, as "" or "/packages/a". */
function projectsOf({ markers }: BuildSystem, files: ReadonlySet<string>): string[] {
  const projects = new Set<string>();
  for (const path of files) {
    const slash = path.lastIndexOf("/");
    if (markers.includes(path.slice(slash + 1)) && /^[\w./@+-]*$/.test(path)) projects.add(path.slice(0, slash));
    if (projects.size === MOST_PROJECTS) break;
  }
  return [...projects];
}

async function namedOutputs(
  directory: string,
  project: string,
  { naming }: BuildSystem,
  files: ReadonlySet<string>,
): Promise<string[]> {
  const named: string[] = [];
  for (const { file, pattern } of naming) {
    if (!files.has(`${project}/${file}`)) continue;
    // What cannot be read, or is no text, names nothing.
    const text = await readFoundTextFile(join(directory, project, file)).catch(() => "");
    for (const [, name = ""] of text.matchAll(pattern)) {
      const output = plainOutput(name);
      if (output !== undefined) named.push(output);
    }
  }
  return named;
}

function patternsFor(places: readonly string[]): string[] {
  const byName = Map.groupBy(places, (place) => place.slice(place.lastIndexOf("/") + 1));
  return [...byName].flatMap(([name, same]) =>
    same.length >= MANY_PLACES ? [`**/${name}/**`] : same.map((place) => `${place}/**`),
  );
}

/** A place that two build systems write to is named with the first. */
function withoutRepeats(found: readonly Outputs[]): Outputs[] {
  const seen = new Set<string>();
  return found.map(({ system, patterns }) => ({
    system,
    patterns: patterns.filter((pattern) => seen.size < seen.add(pattern).size),
  }));
}

/** Things that look like secrets for one reason, and the rules that hide them. */
export interface SecretGroup {
  /** For people: `looks like a secret`. */
  readonly reason: string;
  /** A few of them, for people. */
  readonly examples: readonly string[];
  readonly count: number;
  readonly rules: readonly Rule[];
}

/** More of one kind are hidden by one pattern. */
const MOST_NAMED = 5;
/** As the presets have it for secrets, and above them for a pattern that a preset has too. */
const PRIORITY = 100;

/** Everything that looks like a secret to `lint`, grouped by what gives it away: its name, or what `textOf` finds in it. */
export function findSecrets<Entry extends TreeEntry>(
  entries: readonly Entry[],
  textOf?: (entry: Entry) => string | undefined,
): SecretGroup[] {
  const everything: Rule = { pattern: "**/*", permission: "read" };
  const findings = lint([everything], entries, textOf);
  const paths = findings.flatMap((finding) => (finding.kind === "secret-visible" ? [finding.path] : []));
  const safe = compileRules(getPreset("agent-safe"));
  const groups = Map.groupBy(paths, (path) => givingAway(path, safe.rules[safe.decide(path).rule]?.pattern));
  const named = [...groups].map(([pattern, same]) => ({
    reason: "looks like a secret",
    examples: same.slice(0, 3),
    count: same.length,
    rules:
      same.length <= MOST_NAMED && same.every(isPlain)
        ? same.map((path) => ({ pattern: path, permission: "none", type: "file", priority: PRIORITY }))
        : [{ pattern, permission: "none", priority: PRIORITY + 1 }],
  })) satisfies SecretGroup[];
  return [...named, ...secretsInside(findings)];
}

/** Files that hold keys, each hidden as a whole: it is for people to move the key elsewhere and show the file again. */
function secretsInside(findings: readonly LintFinding[]): SecretGroup[] {
  const seen = new Set<string>();
  return findings.flatMap((finding): SecretGroup[] => {
    if (finding.kind !== "secret-inside" || !isPlain(finding.path) || seen.has(finding.path)) return [];
    const { path, line, secret } = finding;
    seen.add(path);
    const rules: readonly Rule[] = [{ pattern: path, permission: "none", type: "file", priority: PRIORITY }];
    return [{ reason: `line ${line} holds what looks like a secret (${secret})`, examples: [path], count: 1, rules }];
  });
}

/** The pattern that hides a path: in a repository only some files can hold a token; the rest of it is for the preset to decide. */
function givingAway(path: string, pattern: string | undefined): string {
  return pattern === undefined || pattern === "**/.git/**"
    ? `**/.git/${path.slice(path.lastIndexOf("/") + 1)}`
    : pattern;
}

/** It can stand in a rule, and in front of people, as it is. */
function isPlain(path: string): boolean {
  return /^[\w./@+ ~=,-]+$/.test(path);
}
