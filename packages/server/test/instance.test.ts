import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Instance } from "../src/isolation/instance/instance.ts";

let stateDirectory: string;

beforeEach(async () => {
  stateDirectory = await mkdtemp(join(tmpdir(), "agentfense-instance-"));
  await chmod(stateDirectory, 0o711);
  onTestFinished(() => rm(stateDirectory, { recursive: true, force: true }));
});

/** An instance of a process that was killed, with the mount points of one sandbox. */
async function deadInstance(runtimes: readonly string[]): Promise<void> {
  const code = `
    import { Instance } from ${JSON.stringify(join(import.meta.dirname, "../src/isolation/instance/instance.ts"))};
    const instance = await Instance.open(${JSON.stringify({ stateDirectory, runtimes })});
    await instance.makeMountPoints("box", 2);
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
  const heir = await Instance.open({ stateDirectory, runtimes: ["bwrap"] });
  const { names, points } = await adopted(heir, ["bwrap"]);
  expect([names, points.map((point) => point.slice(-6))]).toEqual([1, ["/box/0", "/box/1"]]);
  expect(await adopted(heir, ["bwrap"])).toEqual({ names: 0, points: [] });
  expect(await readdir(stateDirectory)).toEqual([heir.name]);
  await heir.close();
  expect(await readdir(stateDirectory)).toEqual([]);
});

test("a living instance is left alone", async () => {
  const first = await Instance.open({ stateDirectory, runtimes: ["bwrap"] });
  const second = await Instance.open({ stateDirectory, runtimes: ["bwrap"] });
  expect(await adopted(second, ["bwrap"])).toEqual({ names: 0, points: [] });
  await first.close();
  await second.close();
});

test("a dead instance with a runtime that the heir does not have waits for another", async () => {
  await deadInstance(["bwrap", "docker"]);
  const heir = await Instance.open({ stateDirectory, runtimes: ["bwrap"] });
  expect(await adopted(heir, ["bwrap"])).toEqual({ names: 0, points: [] });
  expect((await adopted(heir, ["bwrap", "docker"])).names).toBe(1);
  await heir.close();
});

test("an instance that was killed in the making goes when it is old", async () => {
  const unfinished = join(stateDirectory, ".0123456789abcdef");
  await mkdir(unfinished);
  const heir = await Instance.open({ stateDirectory, runtimes: [] });
  await adopted(heir, []);
  expect(await readdir(stateDirectory)).toContain(".0123456789abcdef");
  await utimes(unfinished, 1, 1);
  await adopted(heir, []);
  expect(await readdir(stateDirectory)).toEqual([heir.name]);
  await heir.close();
});

test("a state directory that others can write is refused", async () => {
  await chmod(stateDirectory, 0o777);
  const refusal = expect(Instance.open({ stateDirectory, runtimes: [] })).rejects;
  await refusal.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
});
