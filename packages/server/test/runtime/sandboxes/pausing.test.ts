import { describe, expect, test } from "vitest";
import { aWhile, eventually, withoutHanging } from "../../../../../test/support/eventually.ts";
import { rounds } from "../../../../../test/support/rounds.ts";
import type { BoxedWorkspace } from "../../../src/isolation/sandbox/api.ts";
import { ALICE, BOB, line, refusal, SandboxesFixture, type SandboxesFixtureOptions } from "./fixture.ts";

const PAUSED = { code: "SANDBOX_PAUSED", message: "sandbox is paused" };
const SESSION = { shell: "", env: {}, workdir: "" };
const TERMINAL = { argv: [], env: {}, workdir: "", size: { columns: 80, rows: 24 } };

async function running(place: SandboxesFixture, idlePauseMs = 0): Promise<string> {
  const { id } = await place.sandboxes.create(ALICE, { ...place.request(), idlePauseMs });
  await place.sandboxes.start(ALICE, id);
  return id;
}

const statusOf = async (place: SandboxesFixture, id: string) => {
  const { status, statusReason } = await place.sandboxes.get(ALICE, id);
  return statusReason === "" ? status : `${status} ${statusReason}`;
};

const pausedByItself = (place: SandboxesFixture, id: string) =>
  eventually(async () => expect(await statusOf(place, id)).toBe("PAUSED idle"));

/** A place whose sandboxes are seen as they are made. */
function watched(seen: BoxedWorkspace[]): SandboxesFixtureOptions {
  return {
    wrap: (isolation) =>
      Object.assign(Object.create(isolation) as typeof isolation, {
        create: async (...parameters: Parameters<typeof isolation.create>) => {
          const sandbox = await isolation.create(...parameters);
          seen.push(sandbox);
          return sandbox;
        },
      }),
  };
}

describe("a sandbox that somebody paused", () => {
  test("refuses what needs a process until it is resumed, and is known, counted and told of as such", async () => {
    await using place = await SandboxesFixture.open();
    const { sandboxes } = place;
    const id = await running(place);
    const session = await sandboxes.createSession(ALICE, id, SESSION);
    expect((await sandboxes.pause(ALICE, id)).status).toBe("PAUSED");
    expect((await sandboxes.pause(ALICE, id)).status).toBe("PAUSED");
    expect(sandboxes.counts()).toMatchObject({ RUNNING: 0, PAUSED: 1 });
    const needProcess = [
      sandboxes.exec(ALICE, id, line("true")),
      sandboxes.execStream(ALICE, id, line("true"))[Symbol.asyncIterator]().next(),
      sandboxes.createSession(ALICE, id, SESSION),
      sandboxes.sessionExec(ALICE, session.id, { command: "true" }),
      sandboxes.sessionExecStream(ALICE, session.id, { command: "true" })[Symbol.asyncIterator]().next(),
      sandboxes.openTerminal(ALICE, id, TERMINAL),
      sandboxes.start(ALICE, id),
    ];
    for (const call of needProcess) expect(await refusal(call)).toEqual(PAUSED);
    const query = { codebaseId: "", ownerId: "", labels: {}, pageSize: 0, pageToken: "" };
    expect((await sandboxes.list(ALICE, { ...query, status: "PAUSED" })).items).toHaveLength(1);
    expect((await sandboxes.resume(ALICE, id)).status).toBe("RUNNING");
    expect((await sandboxes.resume(ALICE, id)).status).toBe("RUNNING");
    expect((await sandboxes.exec(ALICE, id, line("true"))).exitCode).toBe(0);
    const told = (await place.events()).filter(({ type }) => /paused|resumed/.test(type));
    expect(told.map(({ type, data }) => [type, data])).toEqual([
      ["sandbox_paused", { idle: false }],
      ["sandbox_resumed", {}],
    ]);
  });

  test("is of nobody else, and a sandbox that does not run cannot be paused", async () => {
    await using place = await SandboxesFixture.open();
    const id = await running(place);
    for (const call of [place.sandboxes.pause(BOB, id), place.sandboxes.resume(BOB, id)]) {
      expect((await refusal(call)).code).toBe("SANDBOX_NOT_FOUND");
    }
    await place.sandboxes.stop(ALICE, id);
    for (const call of [place.sandboxes.pause(ALICE, id), place.sandboxes.resume(ALICE, id)]) {
      expect((await refusal(call)).code).toBe("SANDBOX_NOT_RUNNING");
    }
  });

  test("can be stopped and destroyed, and starts again as one that runs", async () => {
    await using place = await SandboxesFixture.open();
    const id = await running(place);
    await place.sandboxes.pause(ALICE, id);
    expect((await place.sandboxes.stop(ALICE, id)).status).toBe("STOPPED");
    await place.sandboxes.start(ALICE, id);
    expect((await place.sandboxes.exec(ALICE, id, line("true"))).exitCode).toBe(0);
    await place.sandboxes.pause(ALICE, id);
    await place.sandboxes.destroy(ALICE, id);
    expect(place.log).toEqual([]);
  });

  test("is paused again after a restart of the server, and has its commands back when it is resumed", async () => {
    const seen: BoxedWorkspace[] = [];
    await using place = await SandboxesFixture.open(watched(seen));
    const id = await running(place);
    await place.sandboxes.pause(ALICE, id);
    await place.reopen();
    expect(await statusOf(place, id)).toBe("PAUSED");
    expect(seen.at(-1)?.isPaused).toBe(true);
    expect(await refusal(place.sandboxes.exec(ALICE, id, line("true")))).toEqual(PAUSED);
    await place.sandboxes.resume(ALICE, id);
    expect((await place.sandboxes.exec(ALICE, id, line("true"))).exitCode).toBe(0);
  });
});

describe("a sandbox of which nothing is asked", () => {
  test("pauses by itself, and the next call that needs a process finds it running", async () => {
    const seen: BoxedWorkspace[] = [];
    await using place = await SandboxesFixture.open(watched(seen));
    const { sandboxes } = place;
    const id = await running(place, 20);
    const session = await sandboxes.createSession(ALICE, id, SESSION);
    const calls = [
      () => sandboxes.exec(ALICE, id, line("true")),
      () => sandboxes.sessionExec(ALICE, session.id, { command: "true" }),
      () => Array.fromAsync(sandboxes.execStream(ALICE, id, line("true"))),
    ];
    for (const call of calls) {
      await pausedByItself(place, id);
      expect(seen[0]?.isPaused).toBe(true);
      await call();
    }
    const told = (await place.events()).filter(({ type }) => /paused|resumed/.test(type)).slice(0, 2);
    expect(told.map(({ type, data }) => [type, data])).toEqual([
      ["sandbox_paused", { idle: true }],
      ["sandbox_resumed", {}],
    ]);
  });

  test("runs as long as a command, a stream or a terminal is there", async () => {
    const endless = { stdout: "begun\n", durationMs: Number.POSITIVE_INFINITY };
    await using place = await SandboxesFixture.open({ answer: (text) => (text === "endless" ? endless : undefined) });
    const [busy, idle] = [await running(place, 20), await running(place, 20)];
    const leaving = new AbortController();
    const stream = place.sandboxes.execStream(ALICE, busy, { ...line("endless"), signal: leaving.signal });
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    // Time passes by what the other one does with it.
    for (let i = 0; i < 3; i++) {
      await pausedByItself(place, idle);
      expect(await statusOf(place, busy)).toBe("RUNNING");
      await place.sandboxes.exec(ALICE, idle, line("true"));
    }
    leaving.abort();
    await iterator.return?.();
    await pausedByItself(place, busy);
  });

  test("does not pause without being told to, and somebody's pause is not ended by a call", async () => {
    await using place = await SandboxesFixture.open({ defaults: { idlePauseMs: 20 } });
    const id = (await place.sandboxes.create(ALICE, place.request())).id;
    const never = await running(place, 0);
    await place.sandboxes.start(ALICE, id);
    await pausedByItself(place, id); // by the server's default
    expect(await statusOf(place, never)).toBe("RUNNING");
    expect(await refusal(place.sandboxes.start(ALICE, id))).toMatchObject({ code: "SANDBOX_ALREADY_RUNNING" });
    await place.sandboxes.pause(ALICE, id);
    expect(await statusOf(place, id)).toBe("PAUSED");
    expect(await refusal(place.sandboxes.exec(ALICE, id, line("true")))).toEqual(PAUSED);
    await place.sandboxes.resume(ALICE, id);
    await pausedByItself(place, id);
    await place.sandboxes.resume(ALICE, id);
    expect((await place.sandboxes.exec(ALICE, id, line("true"))).exitCode).toBe(0);
  });

  test("never refuses a call that comes while it pauses", async () => {
    await using place = await SandboxesFixture.open();
    const id = await running(place, 1);
    await withoutHanging(async () => {
      for (let round = 0; round < rounds(60); round++) {
        if (round % 3 === 0) await pausedByItself(place, id);
        else await aWhile(round % 3);
        expect((await place.sandboxes.exec(ALICE, id, line("true"))).exitCode).toBe(0);
      }
    });
    await place.sandboxes.destroy(ALICE, id);
    expect(place.log).toEqual([]);
  });

  test("is as it was after a restart of the server", async () => {
    await using place = await SandboxesFixture.open();
    const id = await running(place, 20);
    await pausedByItself(place, id);
    await place.reopen();
    expect(await statusOf(place, id)).toBe("PAUSED idle");
    expect((await place.sandboxes.exec(ALICE, id, line("true"))).exitCode).toBe(0);
    await pausedByItself(place, id);
  });
});
