import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox } from "../../support/belongings.ts";
import { eventually } from "../../support/eventually.ts";
import type { Message, ServiceName } from "../../support/grpc-client.ts";
import { GuardedServer, type Party } from "../../support/owners.ts";

const SANDBOXES = 3;
const SESSIONS = 2;
const CODEBASES = 4;
const CALLS = 6;

let guarded: GuardedServer;
beforeAll(async () => {
  guarded = await GuardedServer.start({
    settings: {
      sandbox: { max_per_user: SANDBOXES },
      storage: { max_codebases_per_owner: CODEBASES },
      limits: { sessions_per_sandbox: SESSIONS, concurrent_calls: CALLS },
    },
  });
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

/** So many at once, within the number of calls an owner may have at a time. */
async function codes(
  party: Party,
  service: ServiceName,
  method: string,
  request: Message,
  count: number,
): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const batch = Math.min(CALLS, count - found.length);
    const outcomes = await Promise.all(
      Array.from({ length: batch }, () => party.grpc.outcome(service, method, [request])),
    );
    found.push(...outcomes.map(({ code }) => code));
  }
  return found.toSorted();
}

describe("RES-19 what one owner may have", () => {
  test("RES-19 sandboxes are limited for each owner, however many ask at once, and with however many keys", async () => {
    const owner = await guarded.party("dora");
    const other = await guarded.party("dora");
    const codebase_id = await makeCodebase(owner.grpc, { "a.txt": "a" });
    const mine = await codes(owner, "SandboxService", "CreateSandbox", { codebase_id }, 6);
    expect(mine).toEqual([0, 0, 0, 8, 8, 8]);
    const refused = await other.grpc.failure("SandboxService", "CreateSandbox", { codebase_id });
    expect(refused).toEqual({ code: 8, message: `an owner has at most ${SANDBOXES} sandboxes` });
    expect((await other.rest.post("/v1/sandboxes", { codebaseId: codebase_id })).status).toBe(429);
    // Somebody else has room, and so has the owner when one is gone.
    const stranger = await guarded.party("eve");
    await makeSandbox(stranger.grpc, await makeCodebase(stranger.grpc));
    const { sandboxes } = await owner.grpc.call("SandboxService", "ListSandboxes");
    await owner.grpc.call("SandboxService", "DestroySandbox", { sandbox_id: (sandboxes as Message[])[0]?.id });
    expect(await codes(other, "SandboxService", "CreateSandbox", { codebase_id }, 2)).toEqual([0, 8]);
  });

  test("RES-19 sessions are limited for each sandbox", async () => {
    const owner = await guarded.party("fred");
    const sandbox_id = await makeSandbox(owner.grpc, await makeCodebase(owner.grpc));
    expect(await codes(owner, "SandboxService", "CreateSession", { sandbox_id }, 5)).toEqual([0, 0, 8, 8, 8]);
    const { sessions } = await owner.grpc.call("SandboxService", "ListSessions", { sandbox_id });
    expect(sessions).toHaveLength(SESSIONS);
    await owner.grpc.call("SandboxService", "DestroySession", { session_id: (sessions as Message[])[0]?.id });
    expect(await codes(owner, "SandboxService", "CreateSession", { sandbox_id }, 2)).toEqual([0, 8]);
  });

  test("RES-19 codebases are limited for each owner", async () => {
    const owner = await guarded.party("gina");
    const found = await codes(owner, "CodebaseService", "CreateCodebase", { name: "n" }, CODEBASES + 2);
    expect(found).toEqual([...Array.from({ length: CODEBASES }, () => 0), 8, 8]);
  });

  test("RES-19 commands at the same time are limited for each owner, those of streams and terminals too", async () => {
    const owner = await guarded.party("hugo");
    const stranger = await guarded.party("ivan");
    const sandbox_id = await makeSandbox(owner.grpc, await makeCodebase(owner.grpc));
    const terminal = owner.grpc.duplex("SandboxService", "OpenTerminal");
    terminal.write({ open: { sandbox_id, argv: ["cat"] } });
    terminal.write({ data: Buffer.from("up\n") });
    const commands = Array.from({ length: CALLS - 1 }, () =>
      owner.grpc.stream("SandboxService", "ExecStream", { sandbox_id, command: "echo up; sleep 600" }),
    );
    const streams = [terminal, ...commands].map((stream) => {
      stream.on("error", () => {});
      return { stream, up: new Promise((resolve) => stream.once("data", resolve)) };
    });
    await Promise.all(streams.map(({ up }) => up));
    const another = await guarded.party("hugo");
    for (const party of [owner, another]) {
      expect(await party.grpc.failure("SandboxService", "Exec", { sandbox_id, command: "true" })).toMatchObject({
        code: 8,
      });
      expect((await party.rest.post(`/v1/sandboxes/${sandbox_id}/exec`, { command: "true" })).status).toBe(429);
    }
    const own = await makeSandbox(stranger.grpc, await makeCodebase(stranger.grpc));
    expect((await exec(stranger.grpc, own, "echo free")).stdout).toBe("free\n");
    for (const { stream } of streams) stream.cancel();
    await eventually(async () => {
      const { code } = await owner.grpc.outcome("SandboxService", "Exec", [{ sandbox_id, command: "true" }]);
      expect(code).toBe(0);
    });
  });
});

test("RES-19 calls of one owner are limited in number over time", async () => {
  await using slow = await GuardedServer.start({ settings: { limits: { requests_per_second: 2, request_burst: 10 } } });
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, () => slow.alice.grpc.outcome("SystemService", "GetServerInfo", [{}])),
  );
  const refused = outcomes.filter(({ code }) => code === 8);
  expect(refused.length).toBeGreaterThan(10);
  expect(outcomes.filter(({ code }) => code === 0).length).toBeGreaterThanOrEqual(5);
  expect(await slow.mallory.grpc.call("SystemService", "GetServerInfo")).toMatchObject({ owner_id: "mallory" });
  const rest = await slow.alice.rest.get("/v1/server");
  expect(rest.status === 200 || rest.headers.get("retry-after") !== null).toBe(true);
});
