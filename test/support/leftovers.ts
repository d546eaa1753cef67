import { globSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** What servers must not leave behind, as lists of names that can be compared before and after. */
export interface Leftovers {
  readonly mounts: readonly string[];
  readonly controlGroups: readonly string[];
  readonly processes: readonly string[];
  readonly stateEntries: readonly string[];
}

/** The instances that have, or had, a directory here: read it before somebody cleans up. */
export function instancesIn(stateDirectory: string): string[] {
  return readdirSync(stateDirectory).filter((name) => /^[0-9a-f]{16}$/.test(name));
}

/** Only of these instances: other tests run their own servers at the same time. */
export function leftovers(stateDirectory: string, instances: readonly string[]): Leftovers {
  const ofInstances = (text: string): boolean => instances.some((instance) => text.includes(instance));
  return {
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((mountPoint) => mountPoint.startsWith(`${stateDirectory}/`)),
    controlGroups: globSync("/sys/fs/cgroup/**/agentfense-*/*", { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && ofInstances(entry.parentPath))
      .map((entry) => `${entry.parentPath}/${entry.name}`),
    processes: boxProcesses(ofInstances),
    stateEntries: globSync("*/*", { cwd: stateDirectory }).filter((name) => !/\/(lock|runtimes)$/.test(name)),
  };
}

/**
 * Processes in a control group of the instances, or with their mark on the command line; the server's own helpers are not,
 * nor is a dead one whose parent has not asked for it yet.
 */
function boxProcesses(ofInstances: (text: string) => boolean): string[] {
  const found: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ");
      const isOwn = /\/(launcher|watchdog)\.sh /.test(commandLine);
      const belongs = ofInstances(commandLine) || ofInstances(readFileSync(`/proc/${pid}/cgroup`, "utf8"));
      const isDead = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
      if (belongs && !isOwn && !isDead) found.push(`${pid} ${commandLine}`);
    } catch {
      // It ended while we looked.
    }
  }
  return found;
}

/** The first processes of an instance's boxes, as the host counts; only of boxes in control groups. */
export function boxInits(instance: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isInit = /^NSpid:\t.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
        return isInit && readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(instance);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** The processes of this machine whose command line has this text in it, in whatever namespace. */
export function processesWith(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Open descriptors of a process by kind: pipes, files, sockets … */
export function openDescriptors(pid: number | "self" = "self"): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    let target: string;
    try {
      target = readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      continue; // the descriptor of this very listing
    }
    const kind = target.startsWith("/") ? "file" : target.replace(/:\[.*/, "");
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}
