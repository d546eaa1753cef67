import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { basename, dirname } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { DescriptorSet, readFrom } from "../../../src/isolation/bwrap/descriptors.ts";
import { Launcher } from "../../../src/isolation/bwrap/launcher.ts";
import type { Owner } from "../../../src/isolation/filesystem/presentation.ts";
import { openLimitHost } from "../../../src/isolation/limits/open-limit-host.ts";
import type { LogLine } from "../../../src/isolation/log.ts";
import { freshInstance, reasonAgainstControlGroups } from "../limits/support.ts";

const reason = reasonAgainstControlGroups();

describe.skipIf(reason !== undefined)(`the launcher${reason ? ` (skipped: ${reason})` : ""}`, () => {
  test("starts a program in all its control groups without moving a whole process, for which the kernel waits", async () => {
    const host = await openLimitHost({ instance: freshInstance() });
    const group = await host.createGroup("box", { pids: 10 });
    const { entrances } = group;
    const launcher = new Launcher({ perl: "/usr/bin/perl", log: () => {} });
    try {
      const said = await text(
        launch({ launcher, entrances, argv: ["/bin/cat", "/proc/self/io", "/proc/self/cgroup"] }),
      );
      expect(said.match(/^.*\/box$/gm)).toHaveLength(group.entrances.length);
      // In a group of version 2 it was born, and said that it lives; into the others it wrote itself, as the one thread it is.
      const written = group.entrances.filter((entrance) => basename(entrance) !== "cgroup.procs");
      expect(written.map((entrance) => basename(entrance))).toEqual(written.map(() => "tasks"));
      expect(said).toContain(
        `wchar: ${(written.length < group.entrances.length ? "born" : "").length + written.length}\n`,
      );
    } finally {
      await launcher.close();
      await group.remove();
      await host.close();
    }
  });

  test("makes a program somebody else, who has no groups and no capabilities", async () => {
    const launcher = new Launcher({ perl: "/usr/bin/perl", log: () => {} });
    const owner = { uid: 654_321, gid: 654_322 };
    try {
      const status = await text(launch({ launcher, owner, argv: ["/bin/cat", "/proc/self/status"] }));
      const rows = Object.fromEntries(status.split("\n").map((row) => row.split(/:\s*/)));
      expect(rows).toMatchObject({
        Uid: Array(4).fill(owner.uid).join("\t"),
        Gid: Array(4).fill(owner.gid).join("\t"),
        Groups: "",
      });
      for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) expect(Number(rows[set]), set).toBe(0);
    } finally {
      await launcher.close();
    }
  });

  test("starts a program in groups whose members were killed before", async () => {
    const host = await openLimitHost({ instance: freshInstance() });
    const group = await host.createGroup("box", { pids: 10 });
    const { entrances } = group;
    const launcher = new Launcher({ perl: "/usr/bin/perl", log: () => {} });
    try {
      for (let round = 0; round < 3; round += 1) {
        const said = await text(launch({ launcher, entrances, argv: ["/bin/cat", "/proc/self/cgroup"] }));
        expect(said.match(/^.*\/box$/gm)).toHaveLength(group.entrances.length);
        const output = launch({ launcher, entrances, argv: ["/bin/sh", "-c", "echo alive; exec sleep 60"] });
        await once(output, "data");
        await Promise.all([once(output, "close"), group.kill()]);
      }
    } finally {
      await launcher.close();
      await group.remove();
      await host.close();
    }
  });

  test("starts nothing that cannot enter one of them", async () => {
    const host = await openLimitHost({ instance: freshInstance() });
    const group = await host.createGroup("box", {});
    const launcher = new Launcher({ perl: "/usr/bin/perl", log: () => {} });
    try {
      for (const file of ["cgroup.procs", "tasks"]) {
        const entrances = [...group.entrances, `${dirname(dirname(group.entrances[0]!))}/nowhere/${file}`];
        for (const order of [entrances, entrances.toReversed()]) {
          expect(await text(launch({ launcher, entrances: order, argv: ["/bin/echo", "it runs"] }))).toBe("");
        }
      }
    } finally {
      await launcher.close();
      await group.remove();
      await host.close();
    }
  });

  test("gives a program the descriptors that are meant for it, and none of its own", async () => {
    const launcher = new Launcher({ perl: "/usr/bin/perl", log: () => {} });
    try {
      // The last one is that of the directory which is listed.
      expect(await text(launch({ launcher, argv: ["/bin/ls", "/proc/self/fd"] }))).toBe("0\n1\n2\n3\n");
    } finally {
      await launcher.close();
    }
  });

  test("tells of its death also when the next order is the first to notice it", async () => {
    const log: LogLine[] = [];
    const launcher = new Launcher({ perl: "/usr/bin/perl", log: (line) => log.push(line) });
    try {
      expect(await text(launch({ launcher, argv: ["/bin/echo", "first"] }))).toBe("first\n");
      const pid = launcher.pid ?? 0;
      process.kill(pid, "SIGKILL");
      while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"))); // in one turn: Node is not told of its end
      const next = launch({ launcher, argv: ["/bin/echo", "again"] });
      expect(log.map(({ level }) => level)).toEqual(["error"]);
      expect(await text(next)).toBe("again\n");
      expect(launcher.pid).not.toBe(pid);
    } finally {
      await launcher.close();
    }
  });
});

interface Started {
  readonly launcher: Launcher;
  readonly entrances?: readonly string[];
  readonly owner?: Owner;
  readonly argv: readonly string[];
}

function launch({ launcher, entrances = [], owner, argv }: Started): Socket {
  using lent = new DescriptorSet();
  const [input, output] = [lent.pipe(), lent.pipe()];
  launcher.launch({ entrances, owner, argv, descriptors: [input.readEnd, output.writeEnd] });
  lent.close(output.writeEnd);
  return readFrom(lent.release(output.readEnd));
}
