import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestServer } from "./server.ts";

/** Where servers of root keep their mount points, each in a directory of its own. */
export const STATE_DIRECTORY = "/run/agentfense";

/** The instance, of whichever server, that has a place for this sandbox now. */
export function instanceOf(sandboxId: string): string | undefined {
  return readdirSync(STATE_DIRECTORY).find((name) => existsSync(join(STATE_DIRECTORY, name, sandboxId)));
}

/** What the host has of these sandboxes, by kind: mounts, mount points, control groups, changes. */
export function tracesOf(server: TestServer, sandboxIds: readonly string[]): Record<string, string[]> {
  const named = (text: string): boolean => sandboxIds.some((id) => text.includes(id));
  return {
    mounts: readFileSync("/proc/self/mountinfo", "utf8").split("\n").filter(named),
    places: globSync(`${STATE_DIRECTORY}/*/*`).filter(named),
    controlGroups: globSync("/sys/fs/cgroup/**/agentfense-*/*").filter(named),
    deltas: globSync("mounts/**/sb_*", { cwd: server.directory }).filter(named),
  };
}

export const NO_TRACES = { mounts: [], places: [], controlGroups: [], deltas: [] };
