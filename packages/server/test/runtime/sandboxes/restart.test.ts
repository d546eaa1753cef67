import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import { ALICE, line, refusal, SandboxesFixture } from "./fixture.ts";

const SESSION = { shell: "", env: {}, workdir: "" };

describe("after a restart", () => {
  test("what ran runs again, the rest is as it was, and sessions are closed", async () => {
    await using place = await SandboxesFixture.open();
    const ids: string[] = [];
    for (let index = 0; index < 4; index++) ids.push((await place.sandboxes.create(ALICE, place.request())).id);
    const [pending, ran, stopped, gone] = ids as [string, string, string, string];
    for (const id of [ran, stopped, gone]) await place.sandboxes.start(ALICE, id);
    const session = await place.sandboxes.createSession(ALICE, ran, SESSION);
    await place.sandboxes.stop(ALICE, stopped);
    await place.sandboxes.destroy(ALICE, gone);
    await place.reopen();
    const status = async (id: string) => (await place.sandboxes.get(ALICE, id)).status;
    expect([await status(pending), await status(ran), await status(stopped)]).toEqual([
      "PENDING",
      "RUNNING",
      "STOPPED",
    ]);
    expect((await refusal(place.sandboxes.get(ALICE, gone))).code).toBe("SANDBOX_NOT_FOUND");
    expect((await place.sandboxes.exec(ALICE, ran, line("true"))).exitCode).toBe(0);
    expect(await place.sandboxes.getSession(ALICE, session.id)).toMatchObject({
      status: "CLOSED",
      closeReason: "server_restarted",
    });
    expect(await refusal(place.sandboxes.sessionExec(ALICE, session.id, { command: "x" }))).toEqual({
      code: "SESSION_CLOSED",
      message: "session is closed: the server was restarted",
    });
  });

  test("deltas of sandboxes that are gone go, and nothing else does", async () => {
    await using place = await SandboxesFixture.open();
    const { id } = await place.sandboxes.create(ALICE, place.request());
    await mkdir(join(place.deltaDirectory, id, "tree"), { recursive: true });
    await mkdir(join(place.deltaDirectory, `sb_${"a".repeat(32)}`, "tree"), { recursive: true });
    await writeFile(join(place.deltaDirectory, "notes"), "of somebody else");
    await place.reopen();
    expect((await readdir(place.deltaDirectory)).sort()).toEqual(["notes", id]);
  });

  test("one that cannot start is in ERROR with a reason", async () => {
    let broken = false;
    await using place = await SandboxesFixture.open({
      wrap: (isolation) =>
        Object.assign(Object.create(isolation) as typeof isolation, {
          create: async (...parameters: Parameters<typeof isolation.create>) => {
            if (broken) throw new Error("/somewhere is gone");
            return await isolation.create(...parameters);
          },
        }),
    });
    const { id } = await place.sandboxes.create(ALICE, place.request());
    await place.sandboxes.start(ALICE, id);
    broken = true;
    await place.reopen();
    expect(await place.sandboxes.get(ALICE, id)).toMatchObject({ status: "ERROR", statusReason: "internal error" });
  });
});

describe("closing", () => {
  test("ends what runs, refuses what comes, and leaves RUNNING in the store", async () => {
    await using place = await SandboxesFixture.open({ answer: () => ({ durationMs: Number.POSITIVE_INFINITY }) });
    const { id } = await place.sandboxes.create(ALICE, place.request());
    await place.sandboxes.start(ALICE, id);
    const running = refusal(place.sandboxes.exec(ALICE, id, line("hang"))).catch(() => "ended");
    await aWhile(20);
    await place.sandboxes.close();
    await running;
    expect((await refusal(place.sandboxes.get(ALICE, id))).code).toBe("SHUTTING_DOWN");
    expect((await refusal(place.sandboxes.exec(ALICE, id, line("x")))).code).toBe("SHUTTING_DOWN");
    expect((await refusal(place.sandboxes.create(ALICE, place.request()))).code).toBe("SHUTTING_DOWN");
    expect((await place.store.sandbox(id))?.status).toBe("RUNNING");
  });
});

describe("expiry", () => {
  test("destroys a sandbox when its time has come, not before", async () => {
    await using place = await SandboxesFixture.open();
    const { id } = await place.sandboxes.create(ALICE, place.request({ expiresInMs: 4000 }));
    const staying = await place.sandboxes.create(ALICE, place.request());
    await place.sandboxes.start(ALICE, id);
    expect((await place.sandboxes.get(ALICE, id)).status).toBe("RUNNING");
    await eventually(async () =>
      expect(await refusal(place.sandboxes.get(ALICE, id)).catch(() => undefined)).toEqual({
        code: "SANDBOX_NOT_FOUND",
        message: "sandbox not found",
      }),
    );
    await eventually(async () =>
      expect((await place.events("sandbox_expired")).map(({ sandboxId }) => sandboxId)).toEqual([id]),
    );
    expect((await place.sandboxes.get(ALICE, staying.id)).status).toBe("PENDING");
    expect(place.sandboxes.counts()).toMatchObject({ PENDING: 1, RUNNING: 0 });
  });

  test("pauses a sandbox that is to be kept then, once; said anew before, it stays", async () => {
    await using place = await SandboxesFixture.open();
    const { id } = await place.sandboxes.create(ALICE, place.request({ expiresInMs: 500, pauseAtExpiry: true }));
    await place.sandboxes.start(ALICE, id);
    const record = () => place.sandboxes.get(ALICE, id);
    await eventually(async () => expect((await record()).status).toBe("PAUSED"));
    await eventually(async () =>
      expect((await record()).expiresAtMs).toBeGreaterThan(Date.now() + 300 * 24 * 3600_000),
    );
    await place.sandboxes.resume(ALICE, id);
    await place.sandboxes.updateExpiry(ALICE, id, { expiresInMs: 600_000, extendOnly: false });
    expect((await record()).status).toBe("RUNNING");
    expect((await place.events("sandbox_expired")).map(({ sandboxId }) => sandboxId)).toEqual([]);
    // One that does not run then is destroyed as every other.
    const idle = await place.sandboxes.create(ALICE, place.request({ expiresInMs: 60, pauseAtExpiry: true }));
    await eventually(async () => expect(await place.store.sandbox(idle.id)).toBeUndefined());
  });

  test("that came while the server was down counts when it is back", async () => {
    await using place = await SandboxesFixture.open();
    const { id } = await place.sandboxes.create(ALICE, place.request({ expiresInMs: 60 }));
    await place.sandboxes.close();
    await aWhile(80);
    await place.reopen();
    await eventually(async () => expect(await place.store.sandbox(id)).toBeUndefined());
  });
});

describe("a sync that a crash cut short", () => {
  test("is ended before anybody can write, so that it reverts nothing newer", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    await place.upload({ "a.txt": "sandbox\n", "b.txt": "b\n" });
    const { id } = await place.create({ sync: "manual" });
    // The codebase has the sandbox's version of a.txt, and the delta still holds it, beside a change that was never synced.
    const tree = join(place.deltaDirectory, id, "tree");
    await mkdir(tree, { recursive: true, mode: 0o700 });
    await writeFile(join(tree, "a.txt"), "sandbox\n", { mode: 0o644 });
    await writeFile(join(tree, "c.txt"), "new\n", { mode: 0o644 });
    await writeFile(join(place.deltaDirectory, `${id}.unsettled`), "");
    await writeFile(join(place.deltaDirectory, `sb_${"b".repeat(32)}.unsettled`), "");
    await place.reopen();
    expect((await readdir(place.deltaDirectory)).sort()).toEqual([id]);
    await place.upload({ "a.txt": "newer\n" });
    const { version, outcomes } = await place.sandboxes.apply(ALICE, id, { paths: [], dryRun: false });
    expect(version).toBe(3);
    expect(outcomes.map(({ change }) => change.path)).toEqual(["/c.txt"]);
    expect(await place.tree()).toEqual({ "a.txt": "newer\n", "b.txt": "b\n", "c.txt": "new\n" });
  });
});
