import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ResourceLimits } from "../backend/backend.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import type { LogLine } from "../log.ts";
import { type ControlGroup, makeControlGroup } from "./control-group.ts";
import { errorCode } from "./files.ts";
import { type Hierarchy, hierarchiesBelow, parseHierarchies } from "./hierarchies.ts";
import { type LimitGroup, type LimitHost, validateLimits, validateName } from "./limits.ts";
import {
  givenGroupPath,
  openLegacyParent,
  openUnifiedParent,
  type Parent,
  type ParentOptions,
  removeInstances,
  removeParent,
} from "./parents.ts";
import { degradationsWithout, standIns } from "./rlimits.ts";
import { type Controller, LIMITING } from "./settings.ts";

export interface LimitHostOptions {
  /** The server's name on this host; its groups live below `agentfense-<instance>`. */
  readonly instance: string;
  /** A control group to live in, as a path from the top of the hierarchies. An ordinary user must own it. */
  readonly cgroupParent?: string | undefined;
  readonly log?: ((line: LogLine) => void) | undefined;
  /** Only hierarchies mounted at or below this directory are used. */
  readonly root?: string | undefined;
}

/**
 * Finds the strongest way to limit sandboxes on this host and takes each controller from where it is: v2, else v1, else an
 * rlimit stands in for it. A given parent that cannot be used is an error; everything else degrades and says so.
 */
export async function openLimitHost(options: LimitHostOptions): Promise<LimitHost> {
  const { instance, cgroupParent, root = "/" } = options;
  const log = (message: string) => options.log?.({ level: "info", message });
  validateName("instance", instance);
  const rediscover = async () => hierarchiesBelow(root, await discoverHierarchies());
  const hierarchies = await rediscover();
  const givenGroup = cgroupParent === undefined ? undefined : givenGroupPath(cgroupParent, hierarchies);
  const parents = await openParents(hierarchies, { instance, givenGroup, log, rediscover });

  const limiting = parents.flatMap(({ controllers }) => controllers.filter(isLimiting));
  if (givenGroup !== undefined && limiting.length === 0) {
    for (const parent of parents) await removeParent(parent);
    throw new IsolationError("RUNTIME_UNAVAILABLE", `the control group ${givenGroup} cannot hold sandboxes`, {
      hint: "its owner must be the server's user, with cgroup.procs and cgroup.subtree_control, and it needs the controllers memory, pids and cpu",
    });
  }
  const remedy = remedyFor(hierarchies, parents);
  const ours = hierarchies.filter(({ version, controllers }) => version === 2 || controllers.some(isOurs));
  return new ControlGroupHost({ instance, parents, hierarchies: ours, remedy, log });
}

async function discoverHierarchies(): Promise<Hierarchy[]> {
  const [mountinfo, ownGroups] = await Promise.all(
    // Without /proc, or on a kernel without control groups, there is nothing to find.
    ["/proc/self/mountinfo", "/proc/self/cgroup"].map((path) => readFile(path, "utf8").catch(() => "")),
  );
  return parseHierarchies(mountinfo ?? "", ownGroups ?? "");
}

/** Our parent in every hierarchy that is needed, the one that can kill everybody first. */
async function openParents(hierarchies: readonly Hierarchy[], options: ParentOptions): Promise<Parent[]> {
  const unified = hierarchies.find(({ version }) => version === 2);
  const first = unified === undefined ? undefined : await openUnifiedParent(unified, options);
  const needed = legacyControllers(first);
  const legacy: Parent[] = [];
  for (const hierarchy of hierarchies.filter(({ version }) => version === 1)) {
    const controllers = needed.filter((controller) => hierarchy.controllers.includes(controller));
    if (controllers.length === 0) continue;
    const parent = await openLegacyParent(hierarchy, controllers, options);
    if (parent !== undefined) legacy.push(parent);
  }
  legacy.sort((a, b) => Number(b.controllers.includes("freezer")) - Number(a.controllers.includes("freezer")));
  return first === undefined ? legacy : [first, ...legacy];
}

/** What to look for in v1: a v2 group, even one without controllers, can kill and count CPU time. */
function legacyControllers(unified: Parent | undefined): Controller[] {
  if (unified === undefined) return ["freezer", "cpuacct", ...LIMITING];
  return LIMITING.filter((controller) => !unified.controllers.includes(controller));
}

function isLimiting(name: string): name is (typeof LIMITING)[number] {
  return (LIMITING as readonly string[]).includes(name);
}

function isOurs(name: string): boolean {
  return isLimiting(name) || name === "freezer" || name === "cpuacct";
}

function remedyFor(hierarchies: readonly Hierarchy[], parents: readonly Parent[]): string {
  if (hierarchies.length === 0) {
    return (
      "No control groups are mounted writable: mount cgroup2 at /sys/fs/cgroup, or give the container a writable " +
      "/sys/fs/cgroup of its own (--cgroupns=private and --privileged, or a delegated group)."
    );
  }
  if (process.getuid?.() === 0) {
    return (
      "The kernel does not offer the missing controllers here: look at /proc/cgroups, at cgroup_disable= on its " +
      "command line, and in a container at what it was given."
    );
  }
  if (parents.length === 0) {
    return (
      "This user has no control group of its own: start the server with `systemd-run --user --scope -p Delegate=yes " +
      "agentfense …`, or make a group, give it to this user, and name it as the parent of the sandboxes."
    );
  }
  return (
    "The missing controllers are not delegated to this user: `systemctl edit user@.service` with the lines [Service] " +
    "and Delegate=cpu cpuset io memory pids, then log in again."
  );
}

interface ControlGroupHostOptions {
  readonly instance: string;
  /** In the order in which processes enter: the one that can kill everybody first. None: there is nothing to enter. */
  readonly parents: readonly Parent[];
  /** Where dead instances may have left something. */
  readonly hierarchies: readonly Hierarchy[];
  /** Why controllers may be missing and what the operator can do, one sentence. */
  readonly remedy: string;
  readonly log: (line: string) => void;
}

/** What there is of control groups; controllers that are missing, perhaps all, are stood in for by rlimits, and said. */
class ControlGroupHost implements LimitHost {
  readonly kind: LimitHost["kind"];
  readonly degradations: readonly string[];
  readonly #options: ControlGroupHostOptions;
  readonly #missing: readonly (typeof LIMITING)[number][];
  readonly #groups = new Set<ControlGroup>();

  constructor(options: ControlGroupHostOptions) {
    const { parents, remedy } = options;
    this.#options = options;
    const hasGroups = parents.length > 0;
    this.kind = !hasGroups ? "rlimits" : parents.some(({ version }) => version === 1) ? "cgroup-v1" : "cgroup-v2";
    this.#missing = LIMITING.filter((wanted) => !parents.some(({ controllers }) => controllers.includes(wanted)));
    this.degradations = degradationsWithout(this.#missing, { hasGroups, remedy });
  }

  async createGroup(id: string, limits: ResourceLimits): Promise<LimitGroup> {
    validateName("group", id);
    validateLimits(limits);
    const places = this.#options.parents.map((parent) => ({ ...parent, directory: join(parent.directory, id) }));
    const group = await makeControlGroup(places, limits, standIns(this.#missing, limits), () =>
      this.#groups.delete(group),
    );
    this.#groups.add(group);
    return group;
  }

  async removeOrphans(deadInstances: readonly string[]): Promise<void> {
    for (const instance of deadInstances) validateName("instance", instance);
    if (deadInstances.includes(this.#options.instance)) {
      throw new IsolationError("INVALID_ARGUMENT", "this instance is alive and no orphan");
    }
    await removeInstances(this.#options.hierarchies, deadInstances);
  }

  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const group of this.#groups) await group.remove().catch((error: unknown) => failures.push(error));
    for (const parent of this.#options.parents.toReversed()) {
      await removeParent(parent).catch((error: unknown) => {
        // Somebody else put something into it, and it is theirs to remove.
        if (errorCode(error) === "EBUSY") this.#options.log(`${parent.directory} is not empty and stays`);
        else failures.push(error);
      });
    }
    if (failures.length > 0) throw new AggregateError(failures, "control groups could not be removed");
  }
}
