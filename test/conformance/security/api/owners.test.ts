import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Belongings, exec, makeBelongings } from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { CONTRACT, type ContractMethod, callByGrpc, callByRest } from "../../../support/every-method.ts";
import type { Message } from "../../../support/grpc-client.ts";
import { GuardedServer } from "../../../support/owners.ts";

// Mallory has a key of her own and knows every id of Alice's: from a log, a screenshot, a shared terminal.

/** Well formed, and nobody's. */
const NOBODYS = {
  codebase_id: `cb_${"0".repeat(32)}`,
  sandbox_id: `sb_${"0".repeat(32)}`,
  session_id: `sess_${"0".repeat(32)}`,
  key_id: `key_${"0".repeat(32)}`,
  owner_id: "nobody",
};

/** Never ends by itself. */
const ENDLESS = "WatchEvents";

let guarded: GuardedServer;
let alices: Belongings;
let hers: Readonly<Record<keyof typeof NOBODYS, string>>;
let mallorys: Belongings;

beforeAll(async () => {
  guarded = await GuardedServer.start();
  alices = await makeBelongings(guarded.alice.grpc);
  mallorys = await makeBelongings(guarded.mallory.grpc);
  hers = { ...alices, key_id: guarded.alice.keyId, owner_id: "alice" };
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

/** Each id field alone, and all together; the others of a call are Mallory's own, or empty where that is allowed. */
function attacks({ idFields }: ContractMethod): (keyof typeof NOBODYS)[][] {
  const names = idFields as (keyof typeof NOBODYS)[];
  return names.length > 1 ? [...names.map((name) => [name]), names] : [names];
}

function pick(ids: Message, names: readonly string[]): Message {
  return Object.fromEntries(names.map((name) => [name, ids[name]]));
}

describe("API-03 for every method of the contract", () => {
  const methods = CONTRACT.filter(({ name, idFields }) => idFields.length > 0 && name !== ENDLESS);

  test.for(methods.map((method) => [method.name, method] as const))(
    "API-03 %s answers for another owner's id as for one that never was",
    async ([, method]) => {
      const { mallory } = guarded;
      for (const names of attacks(method)) {
        const foreign = await callByGrpc(mallory.grpc, method, pick(hers, names));
        const never = await callByGrpc(mallory.grpc, method, pick(NOBODYS, names));
        expect(foreign).toEqual(never);
        // A list of nothing, a refusal of the role, a request that names somebody else: never a success with content.
        if (foreign.code === 0) expect(foreign.messages).toEqual(never.messages.map(emptyLists));
        else expect([3, 5, 7]).toContain(foreign.code);
        if (names.some((name) => name !== "owner_id" && name !== "key_id") && foreign.code !== 0) {
          expect({ method: method.name, code: foreign.code }).toEqual({ method: method.name, code: 5 });
        }
        const foreignRest = await callByRest(mallory.rest, method, pick(hers, names));
        const neverRest = await callByRest(mallory.rest, method, pick(NOBODYS, names));
        expect([foreignRest?.status, foreignRest?.text]).toEqual([neverRest?.status, neverRest?.text]);
      }
    },
  );

  test("API-03 none of it did anything to what is Alice's", async () => {
    const { alice } = guarded;
    expect(await alice.grpc.call("SandboxService", "GetSandbox", { sandbox_id: alices.sandbox_id })).toMatchObject({
      status: "SANDBOX_STATUS_RUNNING",
      permissions: [{ pattern: "/**", permission: "PERMISSION_WRITE" }],
    });
    expect(await alice.grpc.call("SandboxService", "GetSession", { session_id: alices.session_id })).toMatchObject({
      status: "SESSION_STATUS_ACTIVE",
    });
    expect((await alice.grpc.download(alices.codebase_id, "a.txt")).toString()).toBe("content\n");
    const { versions } = await alice.grpc.call("CodebaseService", "ListVersions", { codebase_id: alices.codebase_id });
    expect(versions).toHaveLength(1);
    expect((await alice.rest.get("/v1/server")).status).toBe(200);
  });
});

function emptyLists(message: Message): Message {
  return Object.fromEntries(Object.entries(message).map(([name, value]) => [name, Array.isArray(value) ? [] : value]));
}

describe("API-04", () => {
  const lists = CONTRACT.filter(({ name }) => name.startsWith("List") && name !== "ListKeys");

  test("API-04 no list shows another owner's entries, with no filter, a foreign one, or a token of the other's page", async () => {
    const { alice, mallory } = guarded;
    await makeBelongings(alice.grpc);
    const filters: Message[] = [{}, { owner_id: "" }, { owner_id: "alice" }, { page_size: 1000 }];
    for (const method of lists) {
      const own = pick(mallorys as unknown as Message, ["codebase_id", "sandbox_id"]);
      const required = [
        ...["ListFiles", "ListVersions", "ListSessions", "ListProcesses", "ListChanges", "ListDirectory"],
        "ListCodeContexts",
      ];
      const base = required.includes(method.name) ? own : {};
      for (const filter of filters) {
        const { code, messages } = await callByGrpc(mallory.grpc, method, { ...base, ...filter });
        expect([method.name, code]).toEqual([method.name, 0]);
        expectNothingOfAlice(messages);
      }
    }
    for (const [service, name] of [
      ["CodebaseService", "ListCodebases"],
      ["SandboxService", "ListSandboxes"],
      ["EventService", "ListEvents"],
    ] as const) {
      const page = await alice.grpc.call(service, name, { page_size: 1 });
      expect(page.next_page_token).not.toBe("");
      const taken = await mallory.grpc.call(service, name, { page_token: page.next_page_token, page_size: 1000 });
      expectNothingOfAlice([taken]);
    }
  });

  test("API-04 labels and states select among the caller's own only", async () => {
    const { sandboxes } = await guarded.mallory.grpc.call("SandboxService", "ListSandboxes", {
      status: "SANDBOX_STATUS_RUNNING",
      labels: {},
    });
    expect((sandboxes as Message[]).map(({ owner_id }) => owner_id)).toEqual(["mallory"]);
    const all = await guarded.admin.grpc.call("SandboxService", "ListSandboxes", { page_size: 1000 });
    expect(new Set((all.sandboxes as Message[]).map(({ owner_id }) => owner_id))).toEqual(
      new Set(["alice", "mallory"]),
    );
  });
});

function expectNothingOfAlice(messages: unknown): void {
  const text = JSON.stringify(messages);
  for (const id of [...Object.values(alices), guarded.alice.keyId, '"alice"']) expect(text).not.toContain(id);
}

test("API-02 the owner is the key's, whatever the request says", async () => {
  const { mallory, alice } = guarded;
  const claims = { name: "claimed", owner_id: "alice" };
  const refused = await mallory.grpc.failure("CodebaseService", "CreateCodebase", claims);
  const unknown = await mallory.grpc.failure("CodebaseService", "CreateCodebase", { ...claims, owner_id: "nobody" });
  expect(refused).toEqual(unknown);
  expect(refused.code).toBe(3);
  expect((await mallory.rest.post("/v1/codebases", { name: "claimed", ownerId: "alice" })).status).toBe(400);
  for (const header of ["x-owner-id", "owner_id", "x-user", "grpc-metadata-owner_id"]) {
    const made = await mallory.rest.request("POST", "/v1/codebases", { name: "h" }, { headers: { [header]: "alice" } });
    expect(made.json.ownerId).toBe("mallory");
  }
  const repeated = await mallory.grpc.call("CodebaseService", "CreateCodebase", { name: "own", owner_id: "mallory" });
  expect(repeated.owner_id).toBe("mallory");
  const { codebases } = await alice.grpc.call("CodebaseService", "ListCodebases");
  expect((codebases as Message[]).filter(({ name }) => name !== "sample")).toEqual([]);
});

test("API-05 nobody makes a sandbox on another owner's codebase, at any of its versions", async () => {
  const { mallory, admin } = guarded;
  for (const extra of [{}, { codebase_version: "1" }, { preset: "view-only" }, { labels: { owner: "alice" } }]) {
    const [foreign, never] = await Promise.all(
      [alices.codebase_id, NOBODYS.codebase_id].map((codebase_id) =>
        mallory.grpc.failure("SandboxService", "CreateSandbox", { codebase_id, ...extra }),
      ),
    );
    expect(foreign).toEqual({ code: 5, message: "codebase not found" });
    expect(foreign).toEqual(never);
  }
  // An administrator's sandbox on Alice's codebase is Alice's.
  const made = await admin.grpc.call("SandboxService", "CreateSandbox", { codebase_id: alices.codebase_id });
  expect(made.owner_id).toBe("alice");
  await admin.grpc.call("SandboxService", "DestroySandbox", { sandbox_id: made.id });
});

test("API-03 a stream of events carries nothing of another owner, whatever it asks for", async () => {
  const { alice, mallory } = guarded;
  const filters: Message[] = [
    { after_sequence: "0" },
    { after_sequence: "0", sandbox_id: alices.sandbox_id },
    { after_sequence: "0", codebase_id: alices.codebase_id },
    { after_sequence: "0", owner_id: "alice" },
    { owner_id: "alice" },
    { types: ["command_executed"] },
  ];
  const seen: Message[][] = filters.map(() => []);
  const streams = filters.map((filter, index) => {
    const stream = mallory.grpc.stream("EventService", "WatchEvents", filter);
    stream.on("error", () => {});
    stream.on("data", (event: Message) => seen[index]!.push(event));
    return stream;
  });
  await exec(alice.grpc, alices.sandbox_id, "echo alice was here");
  const marker = "echo mallory was here";
  // The filter by type begins with what happens next: repeat until the watch has begun.
  await eventually(async () => {
    await exec(mallory.grpc, mallorys.sandbox_id, marker);
    expect([0, 5].map((index) => JSON.stringify(seen[index]).includes(marker))).toEqual([true, true]);
  });
  for (const stream of streams) stream.cancel();
  for (const index of [1, 2, 3, 4]) expect(seen[index]).toEqual([]);
  for (const events of seen) {
    expectNothingOfAlice(events);
    expect(JSON.stringify(events)).not.toContain("alice was here");
  }
});

test("API-36 a session is its owner's, through every method that takes one", async () => {
  const { mallory, alice } = guarded;
  for (const [name, request] of [
    ["GetSession", {}],
    ["SessionExec", { command: "echo taken over" }],
    ["DestroySession", {}],
  ] as const) {
    expect(await mallory.grpc.failure("SandboxService", name, { session_id: alices.session_id, ...request })).toEqual({
      code: 5,
      message: "session not found",
    });
  }
  const stream = await mallory.grpc.outcome("SandboxService", "SessionExecStream", [
    { session_id: alices.session_id, command: "echo taken over" },
  ]);
  expect(stream).toMatchObject({ code: 5, messages: [] });
  // Through a path of her own sandbox the session is no more hers.
  const through = await mallory.rest.post(`/v1/sessions/${alices.session_id}/exec`, {
    sessionId: mallorys.session_id,
    command: "echo taken over",
  });
  expect(through.status).toBe(404);
  const { sessions } = await mallory.grpc.call("SandboxService", "ListSessions", { sandbox_id: mallorys.sandbox_id });
  expect((sessions as Message[]).map(({ id }) => id)).toEqual([mallorys.session_id]);
  const { events } = await alice.grpc.call("EventService", "ListEvents", { types: ["command_executed"] });
  expect(JSON.stringify(events)).not.toContain("taken over");
});

test("API-43 rules are changed by their owner only, and every change is in the audit log", async () => {
  const { alice, mallory, reader } = guarded;
  const update = { sandbox_id: alices.sandbox_id, permissions: [{ pattern: "/**", permission: "PERMISSION_READ" }] };
  expect(await mallory.grpc.failure("SandboxService", "UpdatePermissions", update)).toMatchObject({ code: 5 });
  expect(await reader.grpc.failure("SandboxService", "UpdatePermissions", update)).toMatchObject({ code: 7 });
  const hosts = { sandbox_id: alices.sandbox_id, network_rules: [{ host: "example.com" }] };
  expect(await mallory.grpc.failure("SandboxService", "UpdateNetwork", hosts)).toMatchObject({ code: 5 });
  expect(await reader.grpc.failure("SandboxService", "UpdateNetwork", hosts)).toMatchObject({ code: 7 });
  const soon = { sandbox_id: alices.sandbox_id, expires_in: { seconds: 1 } };
  expect(await mallory.grpc.failure("SandboxService", "UpdateExpiry", soon)).toMatchObject({ code: 5 });
  expect(await reader.grpc.failure("SandboxService", "UpdateExpiry", soon)).toMatchObject({ code: 7 });
  const refused = await exec(alice.grpc, alices.sandbox_id, "echo still writable > w.txt");
  expect(refused.exit_code).toBe(0);
  await alice.grpc.call("SandboxService", "UpdatePermissions", update);
  expect((await exec(alice.grpc, alices.sandbox_id, "echo no > w2.txt")).exit_code).not.toBe(0);
  const { events } = await alice.grpc.call("EventService", "ListEvents", { types: ["permissions_updated"] });
  expect(events).toMatchObject([
    { owner_id: "alice", key_id: alice.keyId, sandbox_id: alices.sandbox_id, codebase_id: alices.codebase_id },
  ]);
  // What runs inside has no way to the API at all: there is no network, and no socket.
  const inside = await exec(
    alice.grpc,
    alices.sandbox_id,
    `(echo > /dev/tcp/${guarded.server.grpc.replace(":", "/")}) 2>&1`,
  );
  expect(inside.exit_code).not.toBe(0);
  await alice.grpc.call("SandboxService", "UpdatePermissions", {
    ...update,
    permissions: [{ pattern: "/**", permission: "PERMISSION_WRITE" }],
  });
});
