import { mkdir, readdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { invalid } from "../backend/isolation-error.ts";
import {
  canEnter,
  delegatedGroup,
  type GroupRelation,
  isDelegated,
  lendControllers,
  moveIntoLeaf,
  moveToUserScope,
} from "./delegation.ts";
import { errorCode, isGone, readControl, readControlIfPresent, words, writeControl } from "./files.ts";
import { type Hierarchy, isWithin } from "./hierarchies.ts";
import { type GroupDirectory, removeDirectories, removeDirectory } from "./kill.ts";
import { type Controller, LIMITING } from "./settings.ts";

/** The directory of one hierarchy that holds all groups of this server. */
export interface Parent extends GroupDirectory {
  /** The topmost directory that had to be made: the parent itself, or one above it when the given group did not exist. */
  readonly madeFrom: string | undefined;
}

type Made = Pick<Parent, "directory" | "madeFrom">;

export interface ParentOptions {
  readonly instance: string;
  /** A group to live in, as a path from the top of every hierarchy. */
  readonly givenGroup: string | undefined;
  readonly log: (line: string) => void;
  /** The hierarchies anew: after this process was moved its own groups are others. */
  readonly rediscover: () => Promise<Hierarchy[]>;
}

/** The parent in a v1 hierarchy: below our own group, so that what bounds the server bounds its sandboxes too. */
export async function openLegacyParent(
  hierarchy: Hierarchy,
  controllers: readonly Controller[],
  options: ParentOptions,
): Promise<Parent | undefined> {
  const { mountPoint, ownGroup } = hierarchy;
  try {
    const made = await makeParent(mountPoint, ownGroup, options);
    // Old kernels count a group without the groups below it unless told so before the first of them exists.
    if ((await readControlIfPresent(`${made.directory}/memory.use_hierarchy`)) === "0") {
      await writeControl(`${made.directory}/memory.use_hierarchy`, "1");
    }
    return { version: 1, controllers, ...made };
  } catch (error) {
    options.log(`no control groups for ${controllers.join(" and ")} below ${mountPoint}: ${errorCode(error) ?? error}`);
    return undefined;
  }
}

/** The parent in the v2 hierarchy, with as many of the limiting controllers as can be had (perhaps none: it can still kill). */
export async function openUnifiedParent(hierarchy: Hierarchy, options: ParentOptions): Promise<Parent | undefined> {
  try {
    const group = await unifiedGroup(hierarchy, options);
    if (group === undefined) return undefined;
    const made = await makeParent(hierarchy.mountPoint, group, options);
    if (await isReachable(made.directory, options)) {
      const controllers = await lendControllers(hierarchy.mountPoint, made.directory, LIMITING, options.log);
      return { version: 2, controllers, ...made };
    }
    await removeParent(made);
    options.log(`processes cannot be moved to ${made.directory}: no delegated group holds both it and this process`);
  } catch (error) {
    options.log(`no control groups below ${hierarchy.mountPoint}: ${errorCode(error) ?? error}`);
  }
  return undefined;
}

/** Removes the parent, and what was made for it above; leaves what is not empty, for it is not ours. */
export async function removeParent({ directory, madeFrom }: Made): Promise<void> {
  const last = madeFrom ?? directory;
  for (let current = directory; isWithin(last, current); current = dirname(current)) {
    await removeDirectory(current, 500);
  }
}

/** The path of a given group from the top of the hierarchies, also when it was given with a mount point before it. */
export function givenGroupPath(given: string, hierarchies: readonly Hierarchy[]): string {
  if (!given.startsWith("/") || given.split("/").includes("..")) {
    const hint = "an absolute path such as /agentfense.slice";
    throw invalid(`not the path of a control group: ${JSON.stringify(given)}`, hint);
  }
  const mount = hierarchies.find(({ mountPoint }) => isWithin(mountPoint, given));
  return mount === undefined ? given : `/${relative(mount.mountPoint, given)}`;
}

async function makeParent(mountPoint: string, group: string, { givenGroup, instance }: ParentOptions): Promise<Made> {
  const above = givenGroup === undefined ? group : join(mountPoint, givenGroup);
  const directory = join(above, parentName(instance));
  return { directory, madeFrom: await mkdir(directory, { recursive: true }) };
}

/** Whether what we start can enter groups of this parent. */
async function isReachable(directory: string, { rediscover }: ParentOptions): Promise<boolean> {
  if (process.getuid?.() === 0) return true;
  const ownGroup = (await rediscover()).find(({ version }) => version === 2)?.ownGroup;
  return ownGroup !== undefined && (await canEnter(ownGroup, directory));
}

/** The v2 group to make our parent in, prepared so that it can lend controllers; undefined when there is none for us. */
async function unifiedGroup(hierarchy: Hierarchy, options: ParentOptions): Promise<string | undefined> {
  const { mountPoint, ownGroup } = hierarchy;
  if (options.givenGroup !== undefined) {
    const group = join(mountPoint, options.givenGroup);
    await makeRoom(group, "kin");
    return group;
  }
  if (process.getuid?.() === 0) {
    await makeRoom(mountPoint, "kin");
    return mountPoint;
  }
  const own = delegatedGroup(ownGroup);
  const delegated = await isDelegated(own);
  if (delegated && (await offersAll(own)) && (await makeRoom(own, "self"))) return own;
  if (await offersAll(mountPoint)) {
    const scope = await userScope(options);
    if (scope !== undefined && (await makeRoom(scope, "self"))) return scope;
  }
  return delegated && (await makeRoom(own, "kin")) ? own : undefined;
}

/**
 * A v2 group other than the root of all cannot have members and lend controllers at once. Moves the members away unless
 * everything is lent already; false when strangers live there.
 */
async function makeRoom(group: string, relation: GroupRelation): Promise<boolean> {
  const type = await readControlIfPresent(`${group}/cgroup.type`);
  if (type === undefined) return true; // the root, or a group that does not exist yet
  const lent = words(await readControl(`${group}/cgroup.subtree_control`));
  const available = words(await readControl(`${group}/cgroup.controllers`));
  const missing = LIMITING.filter((controller) => available.includes(controller) && !lent.includes(controller));
  return missing.length === 0 || (await moveIntoLeaf(group, relation));
}

async function offersAll(group: string): Promise<boolean> {
  const available = words(await readControl(`${group}/cgroup.controllers`));
  return LIMITING.every((controller) => available.includes(controller));
}

async function userScope({ instance, rediscover, log }: ParentOptions): Promise<string | undefined> {
  const scope = async () => {
    const group = (await rediscover()).find(({ version }) => version === 2)?.ownGroup;
    return group?.endsWith(`/agentfense-${instance}.scope`) && (await isDelegated(group)) ? group : undefined;
  };
  try {
    await moveToUserScope(instance, async () => (await scope()) !== undefined);
    log("this process moved to a systemd scope of its own, to which the user's systemd delegated control groups");
    return await scope();
  } catch (error) {
    log(`the user's systemd gave no scope: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

/** The directory that holds all groups of one server. */
function parentName(instance: string): string {
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
        await removeDirectories([place]).catch((error: unknown) => failures.push(error));
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

async function treeBottomUp(directory: string, hierarchy: Hierarchy): Promise<GroupDirectory[]> {
  const below: GroupDirectory[] = [];
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
