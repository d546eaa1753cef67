import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { delegatedGroup, lendControllers, moveIntoLeaf, OWN_LEAF } from "../../../src/isolation/limits/delegation.ts";
import { removeDirectories } from "../../../src/isolation/limits/kill.ts";
import { eventually, freshInstance, reasonAgainstControlGroups, runInside } from "./support.ts";

// Whatever controller the v2 hierarchy of this machine has will do: the rules are the same for all of them.
const UNIFIED = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].find((path) => existsSync(`${path}/cgroup.controllers`));
const controller = UNIFIED && readFileSync(`${UNIFIED}/cgroup.controllers`, "utf8").trim().split(" ")[0];
const reason = reasonAgainstControlGroups() ?? (controller ? undefined : "no controller is in the v2 hierarchy");
if (reason !== undefined) console.warn(`v2 delegation is not tested: ${reason}`);

test("a server that lives in the leaf of an earlier one was delegated the group above", () => {
  expect(delegatedGroup(`/sys/fs/cgroup/a.scope/${OWN_LEAF}`)).toBe("/sys/fs/cgroup/a.scope");
  expect(delegatedGroup("/sys/fs/cgroup/a.scope")).toBe("/sys/fs/cgroup/a.scope");
});

describe.skipIf(reason !== undefined)(
  `a v2 group that is to lend its controllers${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    const lentAtFirst = UNIFIED ? readFileSync(`${UNIFIED}/cgroup.subtree_control`, "utf8") : "";
    let group: string;

    beforeEach(() => {
      group = `${UNIFIED}/lend-${freshInstance()}`;
      mkdirSync(group);
    });

    afterEach(async () => {
      for (const directory of [`${group}/${OWN_LEAF}`, group]) {
        await removeDirectories([{ version: 2, directory, controllers: [] }]);
      }
      if (!lentAtFirst.includes(controller!)) writeFileSync(`${UNIFIED}/cgroup.subtree_control`, `-${controller}`);
    });

    test("lends from the top down to it", async () => {
      expect(await lendControllers(UNIFIED!, group, [controller!, "imagined"], expect.fail)).toEqual([controller]);
      expect(readFileSync(`${group}/cgroup.subtree_control`, "utf8").trim()).toBe(controller);
    });

    test("cannot while processes are in it, and can once they moved to the leaf", async () => {
      const member = runInside({ entrances: [`${group}/cgroup.procs`] }, "sleep 60 & sleep 60");
      await eventually(
        "it entered",
        () => readFileSync(`${group}/cgroup.procs`, "utf8").trim().split("\n").length === 3,
      );
      const lines: string[] = [];
      expect(await lendControllers(UNIFIED!, group, [controller!], (line) => lines.push(line))).toEqual([]);
      expect(lines).toEqual([expect.stringContaining("EBUSY")]);
      expect(await moveIntoLeaf(group, "self")).toBe(true);
      expect(readFileSync(`${group}/cgroup.procs`, "utf8")).toBe("");
      expect(await lendControllers(UNIFIED!, group, [controller!], expect.fail)).toEqual([controller]);
      await removeDirectories([{ version: 2, directory: `${group}/${OWN_LEAF}`, controllers: [] }]);
      await member.end;
    });

    test("is left alone when a stranger is in it", async () => {
      // Its parent is gone, so nothing ties it to this process any more.
      const stranger = spawn("/bin/sh", ["-c", `echo 0 > ${group}/cgroup.procs; (sleep 60 &) ; exit 0`]);
      await eventually("it is an orphan", () => stranger.exitCode === 0);
      expect(await moveIntoLeaf(group, "kin")).toBe(false);
      expect(existsSync(`${group}/${OWN_LEAF}`)).toBe(false);
    });

    test("has nothing to move when nobody is in it", async () => {
      expect(await moveIntoLeaf(group, "self")).toBe(true);
      expect(existsSync(`${group}/${OWN_LEAF}`)).toBe(false);
      rmdirSync(group);
      mkdirSync(group);
    });
  },
);
