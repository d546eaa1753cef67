import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ADMIN, ALICE, BOB, refusal, SandboxesFixture } from "./fixture.ts";

describe("the home of a sandbox", () => {
  test("is there after a stop, a restart of the server and its crash, and goes with the sandbox", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    const id = await place.running();
    const kept = async (): Promise<string> => (await place.run(id, "cat ~/kept; ls /tmp")).stdout;
    await place.run(id, "echo login > ~/kept; touch /tmp/gone");
    await place.sandboxes.stop(ALICE, id);
    await place.sandboxes.start(ALICE, id);
    expect(await kept()).toBe("login\n");
    await place.reopen();
    expect(await kept()).toBe("login\n");
    await place.reopen({ crash: true });
    expect(await kept()).toBe("login\n");
    await place.sandboxes.destroy(ALICE, id);
    expect(await readdir(place.deltaDirectory)).toEqual([]);
  });

  test("is no part of what changed, is synced or is discarded, and counts in the bytes of the deltas", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    const id = await place.running({ sync: "manual" });
    await place.run(id, "head -c 100000 /dev/zero > ~/mine; echo work > /workspace/work");
    const { items } = await place.sandboxes.changes(ALICE, id, { pageSize: 0, pageToken: "" });
    expect(items.map(({ path }) => path)).toEqual(["/work"]);
    expect(await place.sandboxes.deltaBytes()).toBe(102_400 + 4096);
    await place.sandboxes.discard(ALICE, id, []);
    await place.sandboxes.apply(ALICE, id, { paths: [], dryRun: false });
    expect((await place.run(id, "ls ~ /workspace")).stdout).toBe("/home/agent:\nmine\n\n/workspace:\n");
  });
});

describe("a named home", () => {
  test("is kept from sandbox to sandbox, and over restarts of the server", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    const first = await place.running({ home: "tools" });
    await place.run(first, "echo login > ~/token");
    await place.sandboxes.destroy(ALICE, first);
    const second = await place.running({ home: "tools" });
    expect((await place.run(second, "cat ~/token; stat -c %a ~")).stdout).toBe("login\n700\n");
    await place.reopen({ crash: true });
    expect((await place.run(second, "cat ~/token")).stdout).toBe("login\n");
    expect(await place.sandboxes.get(ALICE, second)).toMatchObject({ home: "tools", status: "RUNNING" });
    expect((await place.run(await place.running(), "ls -A ~")).stdout).toBe("");
  });

  test("counts in the quota of the sandbox that uses it", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    const first = await place.running({ home: "tools" });
    await place.run(first, "head -c 3000000 /dev/zero > ~/big");
    await place.sandboxes.destroy(ALICE, first);
    const second = await place.running({ home: "tools", resources: { diskBytes: 4 * 1024 * 1024 } });
    const { stderr } = await place.run(second, "head -c 2000000 /dev/zero > /workspace/more");
    expect(stderr).toMatch(/Disk quota exceeded/);
  });

  test("is of one sandbox at a time: the next is refused, by name, until the first stops, goes or fails", async () => {
    await using place = await SandboxesFixture.open();
    const first = await place.running({ home: "tools" });
    const { id: second } = await place.create({ home: "tools" });
    const start = () => place.sandboxes.start(ALICE, second);
    const inUse = { code: "HOME_IN_USE", message: `the home tools is in use by the sandbox ${first}` };
    expect(await refusal(start())).toEqual(inUse);
    expect((await place.sandboxes.get(ALICE, second)).status).toBe("PENDING");
    expect(await refusal(place.sandboxes.deleteHome(ALICE, "", "tools"))).toEqual(inUse);
    await place.sandboxes.stop(ALICE, first);
    await start();
    expect((await refusal(place.sandboxes.start(ALICE, first))).message).toContain(second);
    await place.sandboxes.destroy(ALICE, second);
    await place.sandboxes.start(ALICE, first);
    // A server that was killed has no sandbox any more that could have it; the next gives it to the same one.
    await place.reopen({ crash: true });
    expect(await place.sandboxes.listHomes(ALICE, "")).toEqual([{ name: "tools", ownerId: "alice", sandboxId: first }]);
    await place.sandboxes.stop(ALICE, first);
    expect(await place.sandboxes.listHomes(ALICE, "")).toEqual([{ name: "tools", ownerId: "alice", sandboxId: "" }]);
  });

  test("a start that fails gives it back", async () => {
    let broken = true;
    await using place = await SandboxesFixture.open({
      wrap: (isolation) =>
        Object.assign(Object.create(isolation) as typeof isolation, {
          create: async (...parameters: Parameters<typeof isolation.create>) => {
            if (broken) throw new Error("/somewhere is gone");
            return await isolation.create(...parameters);
          },
        }),
    });
    const { id } = await place.create({ home: "tools" });
    expect((await refusal(place.sandboxes.start(ALICE, id))).code).toBe("INTERNAL");
    broken = false;
    await place.running({ home: "tools" });
  });

  test("belongs to its owner: to another the same name is another home, or none", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    const alices = await place.running({ home: "tools" });
    await place.run(alices, "echo secret > ~/token");
    expect(await place.sandboxes.listHomes(BOB, "")).toEqual([]);
    expect(await place.sandboxes.listHomes(BOB, "alice")).toEqual([]);
    const never = await refusal(place.sandboxes.deleteHome(BOB, "alice", "never"));
    expect(await refusal(place.sandboxes.deleteHome(BOB, "alice", "tools"))).toEqual(never);
    expect(await refusal(place.sandboxes.deleteHome(BOB, "", "tools"))).toEqual(never);
    const { id } = await place.sandboxes.create(
      BOB,
      place.request({ codebaseId: place.bobsCodebaseId, home: "tools" }),
    );
    await place.sandboxes.start(BOB, id);
    const { stdout } = await place.sandboxes.exec(BOB, id, { command: "ls -A ~", env: {}, workdir: "" });
    expect(stdout.toString()).toBe("");
    const all = [
      { name: "tools", ownerId: "alice", sandboxId: alices },
      { name: "tools", ownerId: "bob", sandboxId: id },
    ];
    await writeFile(join(place.directory, "homes/notes"), "of the operator");
    const listed = [...(await place.sandboxes.listHomes(ADMIN, ""))].sort((a, b) => (a.ownerId < b.ownerId ? -1 : 1));
    expect(listed).toEqual(all);
    expect(await place.sandboxes.listHomes(ADMIN, "bob")).toEqual([all[1]]);
  });

  test("is removed when its owner, or an administrator, says so", async () => {
    await using place = await SandboxesFixture.open();
    for (const home of ["one", "two"]) await place.sandboxes.destroy(ALICE, await place.running({ home }));
    await place.sandboxes.deleteHome(ALICE, "", "one");
    expect(await place.sandboxes.listHomes(ALICE, "")).toEqual([{ name: "two", ownerId: "alice", sandboxId: "" }]);
    await place.sandboxes.deleteHome(ADMIN, "alice", "two");
    expect(await place.events("home_deleted")).toMatchObject([
      { ownerId: "alice", data: { home: "one" } },
      { ownerId: "alice", data: { home: "two" } },
    ]);
    const missing = { code: "HOME_NOT_FOUND", message: "home not found" };
    for (const name of ["two", "..", "../delta", ".owner", "a/b"]) {
      expect(await refusal(place.sandboxes.deleteHome(ADMIN, "alice", name)), name).toEqual(missing);
    }
    const [owner] = await readdir(join(place.directory, "homes"));
    expect(await readdir(join(place.directory, "homes", owner!))).toEqual([".owner"]);
  });

  test("has a proper name, and an owner has so many", async () => {
    await using place = await SandboxesFixture.open({ defaults: { maxHomesPerOwner: 2, maxPerOwner: 0 } });
    for (const home of [".", "..", "../x", "a/b", "/etc", ".hidden", "-x", "a b", "x".repeat(65), "ä", "a\0"]) {
      expect((await refusal(place.create({ home }))).code, home).toBe("INVALID_ARGUMENT");
    }
    for (const home of ["A.b_c-1", "x".repeat(64)]) await place.running({ home });
    const { id } = await place.create({ home: "third" });
    const refused = { code: "LIMIT_EXCEEDED", message: "an owner has at most 2 homes" };
    expect(await refusal(place.sandboxes.start(ALICE, id))).toEqual(refused);
    expect((await place.sandboxes.get(ALICE, id)).status).toBe("PENDING");
  });
});
