import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HANG_MS } from "../../../../../test/support/eventually.ts";
import { identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";
import type { LimitHostOptions } from "../../../src/isolation/limits/open-limit-host.ts";
import { freshInstance, groupsNamed } from "./support.ts";

const CGROUP = "/sys/fs/cgroup";
const v1 = ["memory", "pids", "cpu", "cpuacct", "freezer"].filter((name) =>
  existsSync(`${CGROUP}/${name}/cgroup.procs`),
);
const unified = existsSync(`${CGROUP}/unified/cgroup.procs`) ? "unified" : undefined;
const reason = reasonAgainst("user") ?? (v1.length === 5 ? undefined : "the v1 controllers are not mounted one by one");
if (reason !== undefined) console.warn(`limits of an ordinary user are not tested: ${reason}`);

interface Told {
  readonly kind: string;
  readonly degradations: readonly string[];
  readonly entrances: readonly string[];
  readonly rlimits: readonly object[];
  readonly usage: { readonly pids?: number };
  readonly sleeperEnd?: string;
  readonly hogEnd?: string;
  readonly oomKills: number;
}

/** Runs the program as the ordinary user, after entering groups as root. */
function runAsUser(options: LimitHostOptions, groups: readonly string[] = []): Told {
  const { uid, gid } = identityOf("user");
  const enter = 'program=$1; options=$2; shift 2; for group; do echo 0 > "$group/cgroup.procs"; done';
  const become = `exec setpriv --reuid ${uid} --regid ${gid} --clear-groups "${process.execPath}" "$program" "$options"`;
  const program = join(import.meta.dirname, "ordinary-user-program.ts");
  const args = ["-c", `${enter}; ${become}`, "sh", program, JSON.stringify(options), ...groups];
  return JSON.parse(execFileSync("/bin/sh", args, { encoding: "utf8", env: {}, timeout: HANG_MS })) as Told;
}

describe.skipIf(reason !== undefined)(`an ordinary user${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let instance: string;
  let given: string;

  beforeEach(() => {
    instance = freshInstance();
    given = `given-${instance}`;
  });

  afterEach(() => {
    for (const directory of groupsNamed(given)) rmdirSync(directory);
    expect(groupsNamed(`agentfense-${instance}`)).toEqual([]);
  });

  test("to whom nothing belongs gets rlimits and is told what to do", () => {
    expect(runAsUser({ instance })).toMatchObject({
      kind: "rlimits",
      degradations: expect.arrayContaining([expect.stringContaining("systemd-run --user --scope -p Delegate=yes")]),
      entrances: [],
      rlimits: [
        { resource: "data", value: 24 * 1024 * 1024 }, // the rest is for files
        { resource: "nproc", value: 20 },
      ],
    });
  });

  test("who owns a given group in the v1 hierarchies has every limit, and kills by freezing", () => {
    for (const controller of v1) handOver(`${CGROUP}/${controller}/${given}`);
    expect(runAsUser({ instance, cgroupParent: `/${given}` })).toMatchObject({
      kind: "cgroup-v1",
      degradations: [],
      entrances: expect.arrayContaining([`${CGROUP}/freezer/${given}/agentfense-${instance}/box/tasks`]),
      rlimits: [],
      usage: { pids: 3 },
      sleeperEnd: "SIGKILL",
      hogEnd: "SIGKILL",
      oomKills: 1,
    });
  });

  test.skipIf(unified === undefined)("does not use a v2 group that what it starts could not enter", () => {
    for (const name of [...v1, unified!]) handOver(`${CGROUP}/${name}/${given}`);
    const told = runAsUser({ instance, cgroupParent: `/${given}` });
    expect(told).toMatchObject({ kind: "cgroup-v1", degradations: [], sleeperEnd: "SIGKILL" });
    expect(told.entrances.filter((entrance) => entrance.startsWith(`${CGROUP}/unified`))).toEqual([]);
  });

  test.skipIf(unified === undefined)("uses the v2 group it lives in when that was delegated", () => {
    const group = `${CGROUP}/unified/${given}`;
    handOver(group);
    const told = runAsUser({ instance, root: `${CGROUP}/unified` }, [group]);
    expect(told).toMatchObject({
      kind: "cgroup-v2",
      entrances: [`${group}/agentfense-${instance}/box/cgroup.procs`],
      sleeperEnd: "SIGKILL",
    });
    expect(told.degradations.at(-1)).toContain("Delegate=cpu cpuset io memory pids");
    expect(readdirSync(group).filter((name) => name.startsWith("agentfense"))).toEqual([]);
    expect(readFileSync(`${group}/cgroup.procs`, "utf8")).toBe("");
  });
});

/** Makes a group and gives it away the way a service manager delegates: the directory and the files that move and lend. */
function handOver(directory: string): void {
  const { uid, gid } = identityOf("user");
  mkdirSync(directory);
  for (const name of ["", "cgroup.procs", "cgroup.subtree_control", "tasks"]) {
    if (existsSync(join(directory, name))) chownSync(join(directory, name), uid, gid);
  }
}
