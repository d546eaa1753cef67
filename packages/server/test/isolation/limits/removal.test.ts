import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aWhile } from "../../../../../test/support/eventually.ts";
import { strikeFrozen } from "../../../src/isolation/limits/kill.ts";
import type { LimitHost } from "../../../src/isolation/limits/limits.ts";
import { openLimitHost } from "../../../src/isolation/limits/open-limit-host.ts";
import { entered, eventually, freshInstance, groupsNamed, reasonAgainstControlGroups, runInside } from "./support.ts";

const reason = reasonAgainstControlGroups();
if (reason !== undefined) console.warn(`killing and removing on the real kernel is not tested: ${reason}`);

/** Members that try to stay: each prints its process number and lives for a minute unless killed. */
const SURVIVORS = {
  "in a session of its own": "setsid sh -c 'echo $$; exec sleep 60' & wait",
  "forked twice, its parents gone": "(setsid sh -c 'echo $$; exec sleep 60' &) ; sleep 0.2",
  stopped: "sh -c 'echo $$; kill -STOP $$'",
  "deaf to signals": "trap '' TERM INT HUP; sh -c 'trap \"\" TERM INT HUP; echo $$; while :; do sleep 60; done'",
};

/** Eight lines of descent in which every process forks one and exits: no number stays valid for long (and an end, in case). */
const HOPPERS =
  "hop() { n=$((n+1)); [ $n -lt 5000 ] && hop & }; n=0; for line in 1 2 3 4 5 6 7 8; do hop; done; exec sleep 60";

const ROOTS = [
  { root: "/", means: "everything this machine has" },
  { root: "/sys/fs/cgroup/unified", means: "a v2 hierarchy without controllers" },
  { root: "/sys/fs/cgroup/freezer", means: "the freezer of v1" },
];

for (const { root, means } of ROOTS) {
  const missing = existsSync(root) ? undefined : `${root} is not mounted`;
  if (missing !== undefined) console.warn(`killing with ${means} is not tested: ${missing}`);

  describe.skipIf(reason !== undefined || missing !== undefined)(`with ${means}`, () => {
    let instance: string;
    let host: LimitHost;

    beforeEach(async () => {
      instance = freshInstance();
      host = await openLimitHost({ instance, root });
    });

    afterEach(async () => {
      await host.close();
      expect(groupsNamed(`agentfense-${instance}`)).toEqual([]);
    });

    test.each(Object.entries(SURVIVORS))("a member %s dies at a kill", async (_, script) => {
      const group = await host.createGroup("box", {});
      const member = runInside(group, script);
      const pid = Number(await new Promise<string>((resolve) => member.process.stdout!.once("data", resolve)));
      await eventually("it is settled", () => existsSync(`/proc/${pid}`));
      await group.kill();
      expect(existsSync(`/proc/${pid}/exe`)).toBe(false);
      await member.end;
    });

    test("members that hop from process to process cannot outrun a kill", async () => {
      const group = await host.createGroup("box", {});
      const hoppers = runInside(group, HOPPERS);
      await aWhile(150);
      await group.kill();
      expect(await hoppers.end).toBe("SIGKILL");
    });

    test("kills, removals and more removals at the same time agree", async () => {
      const group = await host.createGroup("box", {});
      const member = runInside(group, "sleep 60 & sleep 60");
      await entered(group, 3);
      await Promise.all([group.kill(), group.remove(), group.kill(), group.remove()]);
      await member.end;
      await group.remove();
      await group.kill();
      expect(group.entrances.filter((entrance) => existsSync(entrance))).toEqual([]);
    });

    test("a new server kills and removes what a dead one left, and nothing else", async () => {
      const dead = freshInstance();
      const alive = freshInstance();
      const [deadHost, aliveHost] = await Promise.all(
        [dead, alive].map((name) => openLimitHost({ instance: name, root })),
      );
      const left = await deadHost!.createGroup("box", {});
      await deadHost!.createGroup("empty", {});
      const running = await aliveHost!.createGroup("box", {});
      // Something the dead server never made, deeper than it would.
      mkdirSync(join(dirname(left.entrances[0]!), "deeper"));
      const [orphan, neighbour] = [runInside(left, "sleep 60"), runInside(running, "sleep 60")];
      await entered(left, 1);
      await entered(running, 1);

      await host.removeOrphans([dead, "never-was"]);
      expect(await orphan.end).toBe("SIGKILL");
      expect(groupsNamed(`agentfense-${dead}`)).toEqual([]);
      expect(neighbour.process.exitCode).toBeNull();
      expect(existsSync(running.entrances[0]!)).toBe(true);
      await expect(host.removeOrphans([instance])).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });

      await aliveHost!.close();
      await neighbour.end;
      expect(groupsNamed(`agentfense-${alive}`)).toEqual([]);
    });

    test("closing removes groups that are still there, and leaves what somebody else put there", async () => {
      const own = freshInstance();
      const lines: string[] = [];
      const other = await openLimitHost({ instance: own, root, log: ({ message }) => lines.push(message) });
      const group = await other.createGroup("box", {});
      const member = runInside(group, "sleep 60");
      await entered(group, 1);
      const parent = dirname(dirname(group.entrances[0]!));
      mkdirSync(`${parent}/foreign`);
      await other.close();
      expect(await member.end).toBe("SIGKILL");
      expect(lines).toEqual([expect.stringContaining("is not empty and stays")]);
      expect(groupsNamed(`agentfense-${own}`)).toEqual([parent]);
      rmdirSync(`${parent}/foreign`);
      rmdirSync(parent);
    });

    test("a given group is made when it is missing and goes with the server", async () => {
      const given = `given${instance}`;
      const limited = root === "/";
      const opening = openLimitHost({ instance: freshInstance(), root, cgroupParent: `/${given}/inner` });
      if (limited) {
        const inner = await opening;
        expect(groupsNamed(given).length).toBeGreaterThan(0);
        const group = await inner.createGroup("box", { pids: 5 });
        expect(await runInside(group, "exit 4").end).toBe(4);
        await inner.close();
      } else {
        await expect(opening).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
      }
      expect(groupsNamed(given)).toEqual([]);
    });
  });
}

const unified = "/sys/fs/cgroup/unified";
describe.skipIf(reason !== undefined || !existsSync(unified))("a v2 kernel without cgroup.kill", () => {
  test("freezing, signalling and thawing leaves nobody", async () => {
    const host = await openLimitHost({ instance: freshInstance(), root: unified });
    const group = await host.createGroup("box", {});
    const hoppers = runInside(group, HOPPERS);
    await aWhile(150);
    await strikeFrozen(dirname(group.entrances[0]!), 2);
    expect(await hoppers.end).toBe("SIGKILL");
    expect(await runInside(group, "exit 6").end).toBe(6);
    await host.close();
  });
});
