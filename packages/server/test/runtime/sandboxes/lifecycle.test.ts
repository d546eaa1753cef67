import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { aWhile, eventually, withoutHanging } from "../../../../../test/support/eventually.ts";
import type { Isolation } from "../../../src/isolation/isolation.ts";
import { ADMIN, ALICE, BOB, line, refusal, SandboxesFixture } from "./fixture.ts";

const NOT_FOUND = { code: "SANDBOX_NOT_FOUND", message: "sandbox not found" };
const NOT_RUNNING = { code: "SANDBOX_NOT_RUNNING", message: "sandbox is not running" };
const ALREADY_RUNNING = { code: "SANDBOX_ALREADY_RUNNING", message: "sandbox is already running" };

describe("the life of a sandbox", () => {
  test("goes from PENDING over RUNNING and STOPPED, again to RUNNING, to nothing", async () => {
    await using place = await SandboxesFixture.open();
    const { sandboxes } = place;
    const { id, status } = await sandboxes.create(ALICE, place.request());
    expect(status).toBe("PENDING");
    expect(id).toMatch(/^sb_[0-9a-f]{32}$/);
    expect((await sandboxes.start(ALICE, id)).status).toBe("RUNNING");
    expect((await sandboxes.exec(ALICE, id, line("true"))).exitCode).toBe(0);
    expect((await sandboxes.stop(ALICE, id)).status).toBe("STOPPED");
    const again = await sandboxes.start(ALICE, id);
    expect(again.status).toBe("RUNNING");
    expect(again.stoppedAtMs).toBeDefined();
    await sandboxes.destroy(ALICE, id);
    expect(await refusal(sandboxes.get(ALICE, id))).toEqual(NOT_FOUND);
    const types = (await place.events()).map(({ type }) => type);
    expect(types).toEqual([
      "sandbox_created",
      "sandbox_started",
      "command_executed",
      "sandbox_stopped",
      "sandbox_started",
      "sandbox_destroyed",
    ]);
    expect(place.log).toEqual([]);
  });

  test("has an answer for every call in a wrong state", async () => {
    await using place = await SandboxesFixture.open();
    const { sandboxes } = place;
    const { id } = await sandboxes.create(ALICE, place.request());
    const session = { shell: "", env: {}, workdir: "" };
    const needRunning = () => [
      sandboxes.stop(ALICE, id),
      sandboxes.exec(ALICE, id, line("true")),
      sandboxes.execStream(ALICE, id, line("true"))[Symbol.asyncIterator]().next(),
      sandboxes.createSession(ALICE, id, session),
      sandboxes.stat(ALICE, id, "/a"),
      sandboxes.openTerminal(ALICE, id, { argv: [], env: {}, workdir: "", size: { columns: 80, rows: 24 } }),
    ];
    for (const call of needRunning()) expect(await refusal(call)).toEqual(NOT_RUNNING);
    await sandboxes.start(ALICE, id);
    expect(await refusal(sandboxes.start(ALICE, id))).toEqual(ALREADY_RUNNING);
    await sandboxes.stop(ALICE, id);
    for (const call of needRunning()) expect(await refusal(call)).toEqual(NOT_RUNNING);
    await sandboxes.destroy(ALICE, id);
    for (const call of [...needRunning(), sandboxes.start(ALICE, id), sandboxes.destroy(ALICE, id)]) {
      expect(await refusal(call)).toEqual(NOT_FOUND);
    }
  });

  test("refuses ids by their shape before any use", async () => {
    await using place = await SandboxesFixture.open();
    const { sandboxes } = place;
    for (const id of [
      "../../etc",
      "sb_",
      "sb_0123456789ABCDEF",
      place.codebaseId,
      "sb_0123456789abcdef\0",
      "sb_%2e%2e",
    ]) {
      expect((await refusal(sandboxes.get(ALICE, id))).code).toBe("INVALID_ARGUMENT");
      expect((await refusal(sandboxes.getSession(ALICE, id))).code).toBe("INVALID_ARGUMENT");
    }
    expect((await refusal(sandboxes.get(ALICE, ""))).message).toBe("sandbox_id is required");
    expect((await refusal(sandboxes.getSession(ALICE, ""))).message).toBe("session_id is required");
    expect(await refusal(sandboxes.get(ALICE, "sb_0123456789abcdef"))).toEqual(NOT_FOUND);
    expect(await sandboxes.listSessions(ALICE, "sb_0123456789abcdef")).toEqual([]);
  });

  test("belongs to the codebase's owner, whoever made it", async () => {
    await using place = await SandboxesFixture.open();
    const { sandboxes } = place;
    expect(await refusal(sandboxes.create(BOB, place.request()))).toEqual({
      code: "CODEBASE_NOT_FOUND",
      message: "codebase not found",
    });
    const { id, ownerId } = await sandboxes.create(ADMIN, place.request());
    expect(ownerId).toBe("alice");
    await sandboxes.start(ALICE, id);
    const { id: sessionId } = await sandboxes.createSession(ALICE, id, { shell: "", env: {}, workdir: "" });
    const foreign = [
      sandboxes.get(BOB, id),
      sandboxes.start(BOB, id),
      sandboxes.stop(BOB, id),
      sandboxes.destroy(BOB, id),
      sandboxes.exec(BOB, id, line("true")),
      sandboxes.updatePermissions(BOB, id, { rules: [], preset: "" }),
      sandboxes.explain(BOB, id, "/a"),
      sandboxes.changes(BOB, id, { pageSize: 0, pageToken: "" }),
      sandboxes.apply(BOB, id, { paths: [], dryRun: false }),
      sandboxes.discard(BOB, id, []),
      sandboxes.readFile(BOB, id, "/a"),
    ];
    for (const call of foreign) expect(await refusal(call)).toEqual(NOT_FOUND);
    const session = { code: "SESSION_NOT_FOUND", message: "session not found" };
    expect(await refusal(sandboxes.getSession(BOB, sessionId))).toEqual(session);
    expect(await refusal(sandboxes.destroySession(BOB, sessionId))).toEqual(session);
    expect(await refusal(sandboxes.sessionExec(BOB, sessionId, { command: "true" }))).toEqual(session);
    expect(await sandboxes.listSessions(BOB, id)).toEqual([]);
    const query = { pageSize: 0, pageToken: "", codebaseId: "", ownerId: "", labels: {} };
    expect((await sandboxes.list(BOB, query)).items).toEqual([]);
    expect((await sandboxes.list(BOB, { ...query, ownerId: "alice" })).items).toEqual([]);
    expect((await sandboxes.list(ALICE, query)).items.map((record) => record.id)).toEqual([id]);
  });

  test("is listed page by page, by codebase, state and labels", async () => {
    await using place = await SandboxesFixture.open();
    const { sandboxes } = place;
    const ids: string[] = [];
    for (const label of ["a", "b", "a"]) {
      ids.push((await sandboxes.create(ALICE, place.request({ labels: { label } }))).id);
    }
    await sandboxes.create(BOB, place.request({ codebaseId: place.bobsCodebaseId }));
    const query = { pageSize: 2, pageToken: "", codebaseId: "", ownerId: "alice", labels: {} };
    const first = await sandboxes.list(ADMIN, query);
    const second = await sandboxes.list(ADMIN, { ...query, pageToken: first.nextPageToken });
    expect([...first.items, ...second.items].map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(second.nextPageToken).toBe("");
    expect((await sandboxes.list(ADMIN, { ...query, labels: { label: "b" } })).items.map(({ id }) => id)).toEqual([
      ids[1],
    ]);
    expect((await refusal(sandboxes.list(ADMIN, { ...query, pageToken: "nonsense" }))).code).toBe("INVALID_ARGUMENT");
  });
});

describe("calls that race", () => {
  test("of two starts one wins, and the other finds it running", async () => {
    await using place = await SandboxesFixture.open();
    const { id } = await place.sandboxes.create(ALICE, place.request());
    const [first, second] = await Promise.allSettled([
      place.sandboxes.start(ALICE, id),
      place.sandboxes.start(ALICE, id),
    ]);
    expect(first.status).toBe("fulfilled");
    expect(second).toMatchObject({ status: "rejected", reason: { code: "SANDBOX_ALREADY_RUNNING" } });
  });

  test("a stop while it starts comes after the start", async () => {
    await using place = await SandboxesFixture.open();
    const { id } = await place.sandboxes.create(ALICE, place.request());
    const starting = place.sandboxes.start(ALICE, id);
    const stopping = place.sandboxes.stop(ALICE, id);
    expect((await starting).status).toBe("RUNNING");
    expect((await stopping).status).toBe("STOPPED");
  });

  test("a destroy ends a start that hangs", async () => {
    const hung = Promise.withResolvers<void>();
    await using place = await SandboxesFixture.open({ wrap: (isolation) => slowStart(isolation, () => hung.promise) });
    const { id } = await place.sandboxes.create(ALICE, place.request());
    const starting = refusal(place.sandboxes.start(ALICE, id));
    await aWhile(20);
    await place.sandboxes.destroy(ALICE, id);
    expect(await starting).toEqual(NOT_FOUND);
    expect(await readdir(place.deltaDirectory)).toEqual([]);
  });

  test("a slow start of one holds up no other", async () => {
    const hung = Promise.withResolvers<void>();
    let slowId = "";
    await using place = await SandboxesFixture.open({
      wrap: (isolation) => slowStart(isolation, async (id) => (id === slowId ? await hung.promise : undefined)),
    });
    const slow = await place.sandboxes.create(ALICE, place.request());
    slowId = slow.id;
    const quick = await place.sandboxes.create(ALICE, place.request());
    const starting = place.sandboxes.start(ALICE, slow.id);
    expect((await place.sandboxes.start(ALICE, quick.id)).status).toBe("RUNNING");
    expect((await place.sandboxes.get(ALICE, slow.id)).status).toBe("PENDING");
    hung.resolve();
    expect((await starting).status).toBe("RUNNING");
  });

  test("a command that runs when the sandbox stops is told so", async () => {
    await using place = await SandboxesFixture.open({ answer: () => ({ durationMs: Number.POSITIVE_INFINITY }) });
    const { id } = await place.sandboxes.create(ALICE, place.request());
    await place.sandboxes.start(ALICE, id);
    const running = place.sandboxes.exec(ALICE, id, line("sleep"));
    await aWhile(20);
    const stopping = place.sandboxes.stop(ALICE, id);
    const late = refusal(place.sandboxes.exec(ALICE, id, line("late")));
    await Promise.allSettled([running]);
    expect((await stopping).status).toBe("STOPPED");
    expect((await late).code).toBe("SANDBOX_NOT_RUNNING");
  });

  test("of many destroys one wins, and the others find nothing", async () => {
    await using place = await SandboxesFixture.open();
    const { id } = await place.sandboxes.create(ALICE, place.request());
    await place.sandboxes.start(ALICE, id);
    const calls = await Promise.allSettled(Array.from({ length: 5 }, () => place.sandboxes.destroy(ALICE, id)));
    expect(calls.map(({ status }) => status)).toEqual(["fulfilled", ...Array(4).fill("rejected")]);
    expect(calls[1]).toMatchObject({ reason: NOT_FOUND });
    expect((await place.events("sandbox_destroyed")).length).toBe(1);
  });

  test("a cancelled start leaves the sandbox as it was", async () => {
    const hung = Promise.withResolvers<void>();
    await using place = await SandboxesFixture.open({ wrap: (isolation) => slowStart(isolation, () => hung.promise) });
    const { id } = await place.sandboxes.create(ALICE, place.request());
    const call = new AbortController();
    const starting = refusal(place.sandboxes.start(ALICE, id, call.signal));
    call.abort();
    expect((await starting).code).toBe("CANCELLED");
    expect((await place.sandboxes.get(ALICE, id)).status).toBe("PENDING");
    hung.resolve();
    expect((await place.sandboxes.start(ALICE, id)).status).toBe("RUNNING");
  });
});

describe("a sandbox that fails to start", () => {
  test("is in ERROR with a reason, and can only be destroyed", async () => {
    await using place = await SandboxesFixture.open({
      wrap: (isolation) => slowStart(isolation, () => Promise.reject(new Error("EACCES: /var/lib/agentfense/x"))),
    });
    const { id } = await place.sandboxes.create(ALICE, place.request());
    expect(await refusal(place.sandboxes.start(ALICE, id))).toEqual({
      code: "INTERNAL",
      message: "failed to start sandbox: internal error",
    });
    expect(await place.sandboxes.get(ALICE, id)).toMatchObject({ status: "ERROR", statusReason: "internal error" });
    for (const call of [
      place.sandboxes.start(ALICE, id),
      place.sandboxes.stop(ALICE, id),
      place.sandboxes.exec(ALICE, id, line("true")),
    ]) {
      expect(await refusal(call)).toEqual({
        code: "SANDBOX_FAILED",
        message: "sandbox is not running: internal error",
      });
    }
    await place.sandboxes.destroy(ALICE, id);
    expect((await place.events("sandbox_failed"))[0]?.data).toEqual({ reason: "internal error" });
  });
});

describe("a sandbox whose file system is lost", () => {
  test("is in ERROR, its sessions are closed, and it can be destroyed", async () => {
    let lose = (): void => {};
    await using place = await SandboxesFixture.open({
      wrap: (isolation) =>
        Object.assign(Object.create(isolation) as Isolation, {
          create: (...[spec, ...rest]: Parameters<Isolation["create"]>) => {
            lose = () => spec.onEvent?.({ kind: "mount_lost", reason: "a defect" });
            return isolation.create(spec, ...rest);
          },
        }),
    });
    const id = await place.running();
    const session = await place.sandboxes.createSession(ALICE, id, { shell: "", env: {}, workdir: "" });
    lose();
    await eventually(async () =>
      expect(await place.sandboxes.get(ALICE, id)).toMatchObject({
        status: "ERROR",
        statusReason: "its file system failed",
      }),
    );
    expect(await place.sandboxes.getSession(ALICE, session.id)).toMatchObject({ closeReason: "killed" });
    expect((await refusal(place.sandboxes.exec(ALICE, id, line("true")))).code).toBe("SANDBOX_FAILED");
    await place.sandboxes.destroy(ALICE, id);
  });
});

describe("with real boxes", () => {
  test("starts, stops, commands and destroys in any order leave nothing behind", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap", defaults: { maxPerOwner: 50 } });
    await place.upload({ "a.txt": "a\n" });
    const ids = await Promise.all(Array.from({ length: 6 }, async () => (await place.create()).id));
    const calls = ids.flatMap((id, index) => [
      place.sandboxes.start(ALICE, id),
      place.run(id, "sleep 5"),
      index % 2 === 0 ? place.sandboxes.stop(ALICE, id) : place.sandboxes.start(ALICE, id),
      place.sandboxes.createSession(ALICE, id, { shell: "", env: {}, workdir: "" }),
      index % 3 === 0 ? place.sandboxes.destroy(ALICE, id) : place.sandboxes.stop(ALICE, id),
      place.sandboxes.destroy(ALICE, id),
    ]);
    const codes = (await Promise.allSettled(calls)).flatMap((call) =>
      call.status === "rejected" ? [(call.reason as { code: string }).code] : [],
    );
    const expected = ["SANDBOX_NOT_FOUND", "SANDBOX_NOT_RUNNING", "SANDBOX_ALREADY_RUNNING"];
    expect(codes.filter((code) => !expected.includes(code))).toEqual([]);
    expect(place.sandboxes.counts()).toEqual({ PENDING: 0, RUNNING: 0, PAUSED: 0, STOPPED: 0, ERROR: 0 });
    expect(await readdir(place.deltaDirectory)).toEqual([]);
    const mounts = (await readFile("/proc/self/mountinfo", "utf8"))
      .split("\n")
      .filter((row) => row.includes(place.directory));
    expect(mounts).toEqual([]);
    expect(place.log).toEqual([]);
  });

  test("a destroyed sandbox's processes and files are gone", async () => {
    await using place = await SandboxesFixture.open({ runtime: "bwrap" });
    await place.upload({ "a.txt": "a\n" });
    const id = await place.running();
    const running = place.run(id, "echo x >b.txt; sleep 600").catch((error: unknown) => error);
    const written = join(place.deltaDirectory, id, "tree/b.txt");
    await eventually(() => expect(existsSync(written)).toBe(true));
    await withoutHanging(() => place.sandboxes.destroy(ALICE, id));
    // It is told as what it is: killed, or cut off before its end could be told.
    const outcome = await running;
    if (outcome instanceof Error) expect(outcome).toMatchObject(NOT_RUNNING);
    else expect(outcome).toMatchObject({ exitCode: 137, signal: "SIGKILL", syncedVersion: 0 });
    expect(await readdir(place.deltaDirectory)).toEqual([]);
    expect(await place.tree()).toEqual({ "a.txt": "a\n" });
  });
});

describe("deleting a codebase", () => {
  test("is refused while sandboxes use it, unless it takes them along", async () => {
    await using place = await SandboxesFixture.open({ defaults: { maxPerOwner: 20 } });
    const ids: string[] = [];
    for (let index = 0; index < 12; index++) ids.push((await place.sandboxes.create(ALICE, place.request())).id);
    const codebaseId = place.codebaseId;
    const { code, message } = await refusal(place.sandboxes.deleteCodebase(ALICE, codebaseId, { force: false }));
    expect(code).toBe("CODEBASE_IN_USE");
    expect(message).toBe(`the codebase is in use by ${ids.slice(0, 10).join(", ")} and 2 more`);
    expect((await refusal(place.sandboxes.deleteCodebase(BOB, codebaseId, { force: true }))).code).toBe(
      "CODEBASE_NOT_FOUND",
    );
    await place.sandboxes.start(ALICE, ids[0]!);
    await place.sandboxes.deleteCodebase(ALICE, codebaseId, { force: true });
    expect(place.sandboxes.counts()).toEqual({ PENDING: 0, RUNNING: 0, PAUSED: 0, STOPPED: 0, ERROR: 0 });
  });

  test("meets no sandbox that is being made", async () => {
    await using place = await SandboxesFixture.open();
    const codebaseId = place.codebaseId;
    const [made, deleted] = await Promise.allSettled([
      place.sandboxes.create(ALICE, place.request()),
      place.sandboxes.deleteCodebase(ALICE, codebaseId, { force: false }),
    ]);
    expect(made.status).toBe("fulfilled");
    expect(deleted).toMatchObject({ status: "rejected", reason: { code: "CODEBASE_IN_USE" } });
  });
});

/** Boxes that start when the given promise says so. */
function slowStart(isolation: Isolation, until: (id: string) => Promise<void>): Isolation {
  return Object.assign(Object.create(isolation) as Isolation, {
    create: async (...parameters: Parameters<Isolation["create"]>) => {
      const sandbox = await isolation.create(...parameters);
      const start = sandbox.start.bind(sandbox);
      sandbox.start = async (options = {}) => {
        const aborted = new Promise<never>((_resolve, reject) => {
          const { signal } = options;
          const fail = (): void => reject(signal?.reason);
          if (signal?.aborted) fail();
          signal?.addEventListener("abort", fail);
        });
        await Promise.race([until(sandbox.id), aborted]);
        await start(options);
      };
      return sandbox;
    },
  });
}
