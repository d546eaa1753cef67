import { readdir } from "node:fs/promises";
import { isGone } from "./files.ts";
import type { Hierarchy } from "./hierarchies.ts";
import { type Place, removePlaces } from "./kill.ts";
import type { Controller } from "./settings.ts";

/** The directory that holds all groups of one server. */
export function parentName(instance: string): string {
  return `agentfense-${instance}`;
}

/** Kills and removes what these instances left, wherever in the hierarchies they were allowed to live. */
export async function removeInstances(hierarchies: readonly Hierarchy[], instances: readonly string[]): Promise<void> {
  if (instances.length === 0) return;
  const names = new Set(instances.map(parentName));
  const failures: unknown[] = [];
  for (const hierarchy of byPower(hierarchies)) {
    for (const directory of await directoriesNamed(names, hierarchy.mountPoint)) {
      for (const place of await treeBottomUp(directory, hierarchy)) {
        await removePlaces([place]).catch((error: unknown) => failures.push(error));
      }
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, "control groups of a dead server could not be removed");
}

/** Hierarchies that can stop everybody at once come first: afterwards the others are empty. */
function byPower(hierarchies: readonly Hierarchy[]): Hierarchy[] {
  const rank = ({ version, controllers }: Hierarchy) => (version === 2 ? 0 : controllers.includes("freezer") ? 1 : 2);
  return hierarchies.toSorted((a, b) => rank(a) - rank(b));
}

async function directoriesNamed(names: ReadonlySet<string>, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await subdirectories(directory)) {
    const path = `${directory}/${name}`;
    if (names.has(name)) found.push(path);
    else found.push(...(await directoriesNamed(names, path)));
  }
  return found;
}

async function treeBottomUp(directory: string, hierarchy: Hierarchy): Promise<Place[]> {
  const below: Place[] = [];
  for (const name of await subdirectories(directory)) {
    below.push(...(await treeBottomUp(`${directory}/${name}`, hierarchy)));
  }
  const controllers = hierarchy.controllers as readonly Controller[];
  return [...below, { version: hierarchy.version, directory, controllers }];
}

async function subdirectories(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}
