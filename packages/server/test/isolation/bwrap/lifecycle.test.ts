import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { type As, identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";
import type { BoxSpec } from "../../../src/isolation/backend/backend.ts";
import { BwrapBackend } from "../../../src/isolation/bwrap/backend.ts";
import { childrenOf } from "../../../src/isolation/bwrap/host-processes.ts";
import { endOrphans, markerOf } from "../../../src/isolation/bwrap/orphans.ts";
import { freeLimits, openBoxFixture, shell, textOf } from "./fixture.ts";
import { codeOf } from "./scenarios.ts";

const VICTIM = new URL("victim-process.ts", import.meta.url).pathname;
const quick = { env: {}, workdir: "/workspace", stdin: false } as const;

/** Processes whose command line has this word. */
function processesWith(word: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0").includes(word);
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function untilNone(word: string): Promise<number[]> {
  await vi.waitUntil(() => processesWith(word).length === 0, { timeout: 60_000 }).catch(() => {});
  return processesWith(word);
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout ?? []) return String(chunk);
  return "";
}

const unlessRoot = reasonAgainst("root") === undefined ? "" : `: ${reasonAgainst("root")}`;

describe("the life of a bwrap backend", () => {
  test("a launcher that dies takes its commands along, and the next command gets a new one", async () => {
    await using place = await openBoxFixture();
    const running = await place.box.run({ ...quick, argv: ["/bin/sleep", "1000"] });
    const [outputs, ending] = [Promise.all([textOf(running.stdout), textOf(running.stderr)]), codeOf(running.exit)];
    const launching = codeOf(place.box.run({ ...quick, argv: ["/bin/sleep", "1000"] }));
    const first = place.backend.launcherPid ?? 0;
    process.kill(first, "SIGKILL");
    expect([await ending, await outputs]).toEqual(["INTERNAL", ["", ""]]);
    expect(["INTERNAL", "ok"]).toContain(await launching); // it had begun, or runs in a new box
    await eventually(() => place.backend.launcherPid !== first); // its death is noticed
    expect((await place.sh("echo again")).stdout).toBe("again\n");
    expect(place.backend.launcherPid).not.toBe(first);
    expect(place.log.map((line) => line.level)).toContain("error");
  });

  test("a waiter that is free takes the next command, its place is told once, and one with something left keeps its own", async () => {
    const told: number[] = [];
    const limits = freeLimits({ makeRoom: (count) => told.push(count) });
    await using place = await openBoxFixture({ limits });
    const run = async (line: string): Promise<number[]> => {
      await (await place.box.run({ ...quick, argv: ["/bin/sh", "-c", line] })).exit;
      return told.splice(0);
    };
    expect(await run("exit 0")).toEqual([0, 1]); // when the box was made, and its first waiter
    expect(await run("exit 0")).toEqual([]);
    expect(await run("sleep 1000 >&- 2>&- &")).toEqual([]);
    expect(await run("exit 0")).toEqual([2]);
    expect(await run("exit 0")).toEqual([]);
  });

  test("a free waiter that nobody needs for a while ends, after its place is taken back", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true });
    try {
      const told: number[] = [];
      await using place = await openBoxFixture({ limits: freeLimits({ makeRoom: (count) => told.push(count) }) });
      await place.sh("exit 0");
      expect(told.at(-1)).toBe(1);
      vi.advanceTimersByTime(31_000);
      expect(told.at(-1)).toBe(0);
      await eventually(() => childrenOf(place.box.initPid!).length === 0);
    } finally {
      vi.useRealTimers();
    }
  });

  test.skipIf(unlessRoot !== "")(
    `a free waiter that was stopped, killed or changed holds no command up, and none is lost, run twice or changed${unlessRoot}`,
    async () => {
      const told: number[] = [];
      await using place = await openBoxFixture({ limits: freeLimits({ makeRoom: (count) => told.push(count) }) });
      const free = () => childrenOf(place.box.initPid!);
      await place.sh("exit 0");
      for (const signal of ["SIGSTOP", "SIGKILL", "SIGKILL"] as const) {
        const [waiter, ...others] = free();
        expect(others).toEqual([]);
        process.kill(waiter!.pid, signal);
        expect(await place.sh("echo once >> /tmp/runs; wc -l < /tmp/runs")).toMatchObject({ exitCode: 0 });
      }
      expect((await place.sh("cat /tmp/runs")).stdout).toBe("once\n".repeat(3));
      const before = (await place.sh("ulimit -n; nice")).stdout;
      const lower =
        "prlimit --pid $PPID --nofile=10:10; renice -n 19 -p $PPID; prlimit --pid $PPID --nofile -o SOFT --noheadings";
      expect((await place.sh(lower)).stdout).toMatch(/ 10\n$/);
      expect((await place.sh("ulimit -n; nice")).stdout).toBe(before);
      process.kill(free()[0]!.pid, "SIGKILL");
      await eventually(() => told.at(-1) === 0);
    },
  );

  for (const as of ["root", "user"] satisfies As[]) {
    const reason = reasonAgainst(as);
    test.skipIf(reason !== undefined)(
      `nothing outlives a killed server (${as})${reason ? `: ${reason}` : ""}`,
      async () => {
        const instance = `victim-${as}-${process.pid}`;
        const child = spawn(process.execPath, [VICTIM, instance], {
          ...identityOf(as),
          stdio: ["ignore", "pipe", "inherit"],
        });
        const { directory } = JSON.parse(await firstLine(child)) as { directory: string };
        expect(processesWith(markerOf(instance))).toHaveLength(1);
        child.kill("SIGKILL");
        expect(await untilNone(markerOf(instance))).toEqual([]);
        await rm(directory, { recursive: true, force: true });
      },
    );
  }

  test("a box is begun while its mounts are made, shows them when they are there, and is none when they fail", async () => {
    await using place = await openBoxFixture();
    const begun = (): number => childrenOf(place.backend.launcherPid ?? 0).length;
    const source = join(place.directory, "later");
    const mounts = [{ source, target: "/workspace" }];
    const mounted = Promise.withResolvers<void>();
    const starting = place.anotherBox({ mounts }, { mounted: mounted.promise });
    await eventually(() => begun() === 2);
    await mkdir(source);
    await writeFile(join(source, "shown"), "");
    mounted.resolve();
    expect((await shell(await starting, "ls")).stdout).toBe("shown\n");

    const failing = Promise.withResolvers<void>();
    const neverStarts = codeOf(place.anotherBox({ mounts }, { mounted: failing.promise }));
    await eventually(() => begun() === 3);
    failing.reject(new Error("there is no mount"));
    expect(await neverStarts).toBe("CANCELLED");
    await eventually(() => begun() === 2);
  });

  test.skipIf(unlessRoot !== "")(`what the box's user cannot reach is called by what it is${unlessRoot}`, async () => {
    await using place = await openBoxFixture();
    const closed = join(place.directory, "closed");
    await mkdir(join(closed, "root/usr"), { recursive: true });
    await chmod(closed, 0o700);
    const refusal = (more: Partial<BoxSpec>): Promise<unknown> =>
      place.anotherBox(more).then(
        () => "started",
        (error: Error) => error.message,
      );
    const where = "is below a directory that the box's user may not enter";
    expect(await refusal({ mounts: [{ source: join(closed, "root"), target: "/workspace" }] })).toBe(
      `the place where workspaces are mounted ${where}`,
    );
    expect(await refusal({ rootDirectory: join(closed, "root") })).toBe(`the root directory ${where}`);
    expect(await refusal({ readOnlyPaths: [join(closed, "root")] })).toBe(`a read-only path ${where}`);
  });

  test("boxes of a dead instance are found and ended, those of others are left alone", async () => {
    await using place = await openBoxFixture({ instance: "alive" });
    const running = await place.box.run({ ...quick, argv: ["/bin/sleep", "1000"] });
    await endOrphans(["somebody-else"]);
    expect(processesWith(markerOf("alive"))).toHaveLength(1);
    await endOrphans(["alive"]);
    expect(await codeOf(running.exit)).toBe("INTERNAL");
  });

  test("closing the backend ends everything", async () => {
    const place = await openBoxFixture({ instance: `closing-${process.pid}` });
    const running = await place.box.run({ ...quick, argv: ["/bin/sleep", "1000"] });
    await place[Symbol.asyncDispose]();
    expect((await running.exit).exitCode).toBe(137);
    expect(processesWith(markerOf(`closing-${process.pid}`))).toEqual([]);
  });

  test("a host without bwrap, or one that forbids user namespaces, is told with a hint", async () => {
    const directory = await mkdtemp(join(tmpdir(), "agentfense-fake-"));
    await chmod(directory, 0o755);
    const fake = join(directory, "bwrap");
    await writeFile(
      fake,
      "#!/bin/sh\necho 'bwrap: No permissions to create new namespace, likely because the kernel does not allow it' >&2\nexit 1\n",
      { mode: 0o755 },
    );
    const open = (bwrapPath: string): Promise<unknown> =>
      BwrapBackend.open({ instance: "none", limits: freeLimits(), bwrapPath }).then(
        () => "opened",
        (error: { code: string; hint: string }) => [error.code, error.hint],
      );
    expect(await open(fake)).toEqual(["RUNTIME_UNAVAILABLE", expect.stringContaining("user namespaces")]);
    expect(await open("/no/such/bwrap")).toEqual(["RUNTIME_UNAVAILABLE", expect.stringContaining("bubblewrap")]);
    await rm(directory, { recursive: true });
  });

  test.skipIf(unlessRoot !== "")(
    `a host without perl is told what the package is called there${unlessRoot}`,
    async () => {
      const backend = new URL("../../../src/isolation/bwrap/backend.ts", import.meta.url).href;
      const open = `import { BwrapBackend } from ${JSON.stringify(backend)};
      await BwrapBackend.open({ instance: "none", limits: {} }).catch((error) => console.log(error.message + "\\n" + error.hint));`;
      const hide = 'mount --bind /dev/null "$(readlink -f /usr/bin/perl)" && exec "$0" --input-type=module --eval "$1"';
      const child = spawn("unshare", ["--mount", "sh", "-c", hide, process.execPath, open], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      expect(await textOf(child.stdout)).toBe(
        "a box needs perl, which this host does not have\n" +
          "install the package perl (Alpine, Arch), perl-interpreter (Fedora) or perl-base (Debian, Ubuntu)\n",
      );
    },
  );
});
