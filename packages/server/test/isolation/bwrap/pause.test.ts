import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually, withoutHanging } from "../../../../../test/support/eventually.ts";
import type { BoxProcess } from "../../../src/isolation/backend/backend.ts";
import type { LimitHost } from "../../../src/isolation/limits/limits.ts";
import { openLimitHost } from "../../../src/isolation/limits/open-limit-host.ts";
import { type BoxFixture, freeLimits, openBoxFixture } from "./fixture.ts";

const V1_FREEZER = "/sys/fs/cgroup/freezer";
const isRoot = process.getuid?.() === 0;
const instance = `pause-${process.pid}`;

/** The ways to hold a box still. */
const WAYS: readonly (readonly [name: string, open: () => Promise<LimitHost>, missing: string])[] = [
  ["control groups", () => openLimitHost({ instance }), isRoot ? "" : "only root has them for sure"],
  [
    "the freezer of version 1",
    () => openLimitHost({ instance, root: V1_FREEZER }),
    isRoot && existsSync(`${V1_FREEZER}/cgroup.procs`) ? "" : "it is not mounted here, or not ours",
  ],
  ["signals", async () => freeLimits(), ""],
];

for (const [name, openLimits, missing] of WAYS) {
  if (missing !== "") process.stdout.write(`skipped: a box that is paused by ${name}: ${missing}\n`);
  describe.skipIf(missing !== "")(`a box that is paused by ${name}`, () => {
    async function open(): Promise<BoxFixture> {
      const limits = await openLimits();
      const place = await openBoxFixture({ limits });
      return Object.assign(Object.create(place) as BoxFixture, {
        [Symbol.asyncDispose]: async () => {
          await place[Symbol.asyncDispose]();
          await limits.close();
        },
      });
    }

    const run = (place: BoxFixture, line: string): Promise<BoxProcess> =>
      place.box.run({ argv: ["/bin/bash", "-c", line], env: {}, workdir: "/workspace", stdin: false });

    /** A process that counts in a file as fast as it can; returns how far it is. */
    async function counting(place: BoxFixture): Promise<() => Promise<number>> {
      await run(place, "i=0; while :; do i=$((i+1)); echo $i >> count; done");
      const count = async (): Promise<number> => (await readFile(join(place.directory, "count"), "utf8")).length;
      await eventually(async () => (await count()) > 10);
      return count;
    }

    /** Whether it stands: over as much reading as it could have counted meanwhile. */
    async function stands(count: () => Promise<number>): Promise<boolean> {
      const before = await count();
      for (let i = 0; i < 300; i++) if ((await count()) !== before) return false;
      return true;
    }

    test("LIVE-09 stands until it is resumed, though a command in it is killed, which ends with all it started", async () => {
      await using place = await open();
      const count = await counting(place);
      const victim = await run(place, "setsid sleep 991 & echo; sleep 992");
      const other = await run(place, "sleep 993");
      await place.box.pause();
      expect(await stands(count)).toBe(true);
      victim.kill();
      expect((await withoutHanging(() => victim.exit)).exitCode).toBe(137);
      await eventually(() => stands(count));
      await place.box.resume();
      const [before, left] = [await count(), await place.sh("ps -eo args | grep -o '^sleep 99.'")];
      expect(left.stdout).toBe("sleep 993\n");
      await eventually(async () => (await count()) > before);
      other.kill();
    });

    test("starts what was being started, and can be destroyed", async () => {
      await using place = await open();
      const starting = Array.from({ length: 20 }, () => run(place, "echo $$"));
      await place.box.pause();
      expect((await withoutHanging(() => Promise.all(starting))).length).toBe(20);
      await place.box.resume();
      const count = await counting(place);
      await place.box.pause();
      expect(await stands(count)).toBe(true);
      await withoutHanging(() => place.box.destroy());
    });

    test("who was stopped before stays so, and no shell sees its job stop", async () => {
      await using place = await open();
      await place.sh("mkfifo fifo");
      const isStopped = "grep -q 'T (stopped)' /proc/$!/status";
      const line = `set -m; sleep 994 & kill -STOP $!; until ${isStopped}; do :; done; sleep 995 & echo ready; read x < fifo; jobs`;
      const shell = await run(place, line);
      let said = "";
      shell.stdout.on("data", (text: Buffer) => {
        said += text;
      });
      await eventually(() => said.includes("ready"));
      said = "";
      for (let i = 0; i < 5; i++) {
        await place.box.pause();
        await place.box.resume();
      }
      await place.sh("echo > fifo");
      await shell.exit;
      await eventually(() => expect(said).toMatch(/^\[1\]\S? +Stopped +sleep 994\n\[2\]\S? +Running +sleep 995 &\n$/));
    });
  });
}
