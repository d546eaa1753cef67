import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";
import { Instance } from "../../../src/isolation/instance/instance.ts";

const MODULE = join(import.meta.dirname, "../../../src/isolation/instance/instance.ts");

let stateDirectory: string;

beforeEach(async () => {
  stateDirectory = await mkdtemp(join(tmpdir(), "agentfense-instance-"));
  await chmod(stateDirectory, 0o711);
  onTestFinished(() => rm(stateDirectory, { recursive: true, force: true }));
});

/** An instance of a process that was killed, with the mount points of one sandbox. */
async function deadInstance(runtimes: readonly string[]): Promise<void> {
  const code = `
    import { Instance } from ${JSON.stringify(MODULE)};
    const instance = await Instance.open(${JSON.stringify({ stateDirectory })});
    for (const runtime of ${JSON.stringify(runtimes)}) await instance.willUse(runtime);
    await instance.makeMountPoint("box", { uid: process.getuid(), gid: process.getgid() });
    process.kill(process.pid, "SIGKILL");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "inherit" });
  await once(child, "exit");
}

async function adopted(instance: Instance, runtimes: readonly string[]): Promise<{ names: number; points: string[] }> {
  const seen = { names: 0, points: [] as string[] };
  await instance.adoptDead(new Set(runtimes), async (names, points) => {
    seen.names += names.length;
    seen.points.push(...points);
  });
  return seen;
}

test("a dead instance is handed to its heir once, and its directory goes", async () => {
  await deadInstance(["bwrap"]);
  const heir = await Instance.open({ stateDirectory });
  const { names, points } = await adopted(heir, ["bwrap"]);
  expect([names, points.map((point) => point.slice(-6))]).toEqual([1, ["/mount"]]);
  expect(await adopted(heir, ["bwrap"])).toEqual({ names: 0, points: [] });
  expect(await readdir(stateDirectory)).toEqual([heir.name]);
  await heir.close();
  expect(await readdir(stateDirectory)).toEqual([]);
});

test("a living instance is left alone", async () => {
  const first = await Instance.open({ stateDirectory });
  const second = await Instance.open({ stateDirectory });
  expect(await adopted(second, ["bwrap"])).toEqual({ names: 0, points: [] });
  await first.close();
  await second.close();
});

test("a dead instance with a runtime that the heir does not have waits for another", async () => {
  await deadInstance(["bwrap", "docker"]);
  const heir = await Instance.open({ stateDirectory });
  expect(await adopted(heir, ["bwrap"])).toEqual({ names: 0, points: [] });
  expect((await adopted(heir, ["bwrap", "docker"])).names).toBe(1);
  await heir.close();
});

test("an instance that was killed in the making goes when it is old", async () => {
  const unfinished = join(stateDirectory, ".0123456789abcdef");
  await mkdir(unfinished);
  const heir = await Instance.open({ stateDirectory });
  await adopted(heir, []);
  expect(await readdir(stateDirectory)).toContain(".0123456789abcdef");
  await utimes(unfinished, 1, 1);
  await adopted(heir, []);
  expect(await readdir(stateDirectory)).toEqual([heir.name]);
  await heir.close();
});

test("a state directory that others can write is refused", async () => {
  await chmod(stateDirectory, 0o777);
  const refusal = expect(Instance.open({ stateDirectory })).rejects;
  await refusal.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
});

test.skipIf(reasonAgainst("user") !== undefined)(
  "a user without a runtime directory has a state directory that nobody can make before, and finds it again",
  async () => {
    const user = identityOf("user");
    await chmod(stateDirectory, 0o1777);
    // What root, as any other user, can leave there: what used to be the name, and what begins like a new one.
    for (const name of [`agentfense-${user.uid}`, `agentfense-${user.uid}-000000`]) {
      await mkdir(join(stateDirectory, name), { mode: 0o755 });
    }
    const code = `
      import { Instance } from ${JSON.stringify(MODULE)};
      const first = await Instance.open();
      await first.makeMountPoint("box", { uid: process.getuid(), gid: process.getgid() });
      const second = await Instance.open();
      console.log(JSON.stringify([first.directory, second.directory]));
      await second.close();
      process.kill(process.pid, "SIGKILL");`;
    const heir = `
      import { Instance } from ${JSON.stringify(MODULE)};
      const heir = await Instance.open();
      const found = [];
      await heir.adoptDead(new Set(), async (names, points) => void found.push(...points));
      console.log(JSON.stringify([heir.directory, ...found]));
      await heir.close();`;
    const env = { TMPDIR: stateDirectory, XDG_RUNTIME_DIR: "/run/user/0" };
    const run = (program: string): string[] => {
      // The first program kills itself: what counts is what it said.
      const script = `"$0" --input-type=module -e "$1"; true`;
      return JSON.parse(
        execFileSync("/bin/sh", ["-c", script, process.execPath, program], { ...user, env, encoding: "utf8" }),
      ) as string[];
    };
    const [first = "", second = ""] = run(code);
    expect(dirname(second)).toBe(dirname(first));
    expect(dirname(first)).toMatch(new RegExp(`^${stateDirectory}/agentfense-${user.uid}-\\w{6}$`));
    const [directory = "", ...points] = run(heir);
    expect([dirname(directory), points]).toEqual([dirname(first), [join(first, "box/mount")]]);
  },
);
