import { join } from "node:path";
import type { TreeEntry } from "@agentfense/permission";
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
