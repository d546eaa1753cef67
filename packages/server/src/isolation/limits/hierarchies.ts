import { relative, resolve } from "node:path";

/** One cgroup file system as this process sees it. */
export interface Hierarchy {
  readonly version: 1 | 2;
  /** The controllers of a v1 hierarchy; empty for v2, whose groups say themselves what they have (cgroup.controllers). */
  readonly controllers: readonly string[];
  readonly mountPoint: string;
  /** The directory of the group this process is in. */
  readonly ownGroup: string;
}

/**
 * Puts together /proc/self/mountinfo (where the hierarchies are mounted) and /proc/self/cgroup (which group of each is
 * ours). Read-only mounts are left out, and of several mounts of one hierarchy the one with the shortest path counts.
 */
export function parseHierarchies(mountinfo: string, ownGroups: string): Hierarchy[] {
  const memberships = ownGroups.split("\n").flatMap(parseMembership);
  const mounts = mountinfo
    .split("\n")
    .flatMap(parseMount)
    .sort((a, b) => a.mountPoint.length - b.mountPoint.length);
  return memberships.flatMap((membership): Hierarchy[] => {
    const mount = mounts.find((candidate) => holds(candidate, membership));
    if (mount === undefined) return [];
    const { mountPoint } = mount;
    const { version, controllers } = membership;
    return [{ version, controllers, mountPoint, ownGroup: directoryOf(membership.path, mount) }];
  });
}

/** The hierarchies at or below a directory. */
export function hierarchiesBelow(root: string, hierarchies: readonly Hierarchy[]): Hierarchy[] {
  return hierarchies.filter(({ mountPoint }) => isWithin(root, mountPoint));
}

export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === "" || !(way === ".." || way.startsWith("../"));
}

interface Membership {
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
  readonly path: string;
}

/** `4:memory:/a/b` of v1, `0::/a/b` of v2. */
function parseMembership(line: string): Membership[] {
  const match = /^(\d+):([^:]*):(\/.*)$/.exec(line);
  if (match === null) return [];
  const [, id, list, path] = match as unknown as [string, string, string, string];
  if (id === "0") return [{ version: 2, controllers: [], path }];
  return [{ version: 1, controllers: list.split(","), path }];
}

interface CgroupMount {
  readonly version: 1 | 2;
  /** The group that appears at the mount point: not `/` in a container without a cgroup namespace. */
  readonly rootGroup: string;
  readonly mountPoint: string;
  readonly options: readonly string[];
}

/** `31 23 0:28 /root /mount/point rw,relatime [tags] - cgroup source rw,memory` */
function parseMount(line: string): CgroupMount[] {
  const [before, after] = line.split(" - ");
  if (before === undefined || after === undefined) return [];
  const [, , , rootGroup, mountPoint, mountOptions] = before.split(" ");
  const [type, , superOptions] = after.split(" ");
  if (type !== "cgroup" && type !== "cgroup2") return [];
  if (rootGroup === undefined || mountPoint === undefined || mountOptions === undefined) return [];
  const options = (superOptions ?? "").split(",");
  if (mountOptions.split(",").includes("ro") || options.includes("ro")) return [];
  return [
    {
      version: type === "cgroup2" ? 2 : 1,
      rootGroup: unescapeOctal(rootGroup),
      mountPoint: unescapeOctal(mountPoint),
      options,
    },
  ];
}

/** mountinfo writes space, tab, newline and backslash as octal numbers. */
function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function holds(mount: CgroupMount, membership: Membership): boolean {
  if (mount.version !== membership.version) return false;
  return membership.controllers.every((controller) => mount.options.includes(controller));
}

function directoryOf(group: string, mount: CgroupMount): string {
  // A group outside of what is mounted cannot be reached; the top of the mount is then the nearest thing to it.
  if (!isWithin(mount.rootGroup, resolve("/", group)) || group.split("/").includes("..")) return mount.mountPoint;
  return resolve(mount.mountPoint, relative(mount.rootGroup, group));
}
