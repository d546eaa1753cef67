import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Belongings,
  exec,
  makeBelongings,
  makeCodebase,
  makeSession,
  sessionExec,
} from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { GuardedServer, type Party } from "../../../support/owners.ts";
import { TestServer } from "../../../support/server.ts";

const MAX_EVENTS = 120;

let guarded: GuardedServer;
let alices: Belongings;

beforeAll(async () => {
  guarded = await GuardedServer.start();
  alices = await makeBelongings(guarded.alice.grpc);
  await makeBelongings(guarded.mallory.grpc);
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

async function events({ grpc }: Party, request: Message = {}): Promise<Message[]> {
  return (await grpc.call("EventService", "ListEvents", { page_size: 1000, ...request })).events as Message[];
}

test("API-44 events are their owner's only, by every filter and over REST", async () => {
  const { alice, mallory, admin, reader } = guarded;
  const command = "echo audited-7f3a";
  await exec(alice.grpc, alices.sandbox_id, command);
  expect(JSON.stringify(await events(alice))).toContain(command);
  expect(JSON.stringify(await events(reader))).toContain(command);
  expect(JSON.stringify(await events(admin))).toContain(command);
  for (const filter of [
    {},
    { sandbox_id: alices.sandbox_id },
    { codebase_id: alices.codebase_id },
    { owner_id: "alice" },
    { types: ["command_executed"] },
  ]) {
    const found = await events(mallory, filter);
    expect([filter, JSON.stringify(found).includes(command)]).toEqual([filter, false]);
    expect(found.filter(({ owner_id }) => owner_id !== "mallory")).toEqual([]);
  }
  const rest = await mallory.rest.get(`/v1/events?sandbox_id=${alices.sandbox_id}&owner_id=alice&page_size=1000`);
  expect(rest.json.events).toEqual([]);
  // What administrators do is no owner's business: keys of others, and who has them.
  expect((await events(mallory)).filter(({ type }) => String(type).startsWith("key_"))).toMatchObject([
    { type: "key_created", owner_id: "mallory" },
  ]);
});

test("API-44 neither output nor input nor variables of a command are kept, and its text is bounded", async () => {
  const { alice } = guarded;
  const secret = "SECRET-c81f";
  await exec(alice.grpc, alices.sandbox_id, 'cat; echo "$TOKEN"', {
    stdin: `${secret}-in`,
    env: { TOKEN: `${secret}-env` },
  });
  const session = await makeSession(alice.grpc, alices.sandbox_id, { env: { TOKEN: `${secret}-session` } });
  await sessionExec(alice.grpc, session, 'echo "$TOKEN"');
  const made = await alice.grpc.call("SandboxService", "CreateSandbox", {
    codebase_id: alices.codebase_id,
    env: { TOKEN: `${secret}-made` },
  });
  await alice.grpc.upload(alices.codebase_id, "token.txt", `${secret}-file`);
  const told = JSON.stringify([
    await events(alice),
    made,
    await alice.grpc.call("SandboxService", "GetSandbox", { sandbox_id: made.id }),
  ]);
  expect(told).not.toContain(secret);
  expect(guarded.server.output).not.toContain(secret);
  for (const { key } of [guarded.alice, guarded.mallory, guarded.admin])
    expect(guarded.server.output).not.toContain(key);

  await exec(alice.grpc, alices.sandbox_id, `: ${"x".repeat(100_000)}`);
  const longest = Math.max(...(await events(alice)).map((event) => JSON.stringify(event).length));
  expect(longest).toBeLessThan(10_000);
});

test("API-44 the log does not grow for ever, and the newest are kept", async () => {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-audit-"));
  try {
    const settings = { audit: { max_events: MAX_EVENTS } };
    const first = await TestServer.start({ directory, settings });
    {
      using client = new GrpcClient(first.grpc);
      const codebase_id = await makeCodebase(client, {}, "the-first-of-many");
      const { id: sandbox_id } = await client.call("SandboxService", "CreateSandbox", { codebase_id });
      for (let round = 0; round < 6; round++) {
        const updates = Array.from({ length: 50 }, () =>
          client.call("SandboxService", "UpdatePermissions", { sandbox_id }),
        );
        await Promise.all(updates);
      }
      await makeCodebase(client, {}, "the-last");
    }
    await first.stop();
    // Room is made now and then, and whenever a server starts.
    await using second = await TestServer.start({ directory, settings });
    using client = new GrpcClient(second.grpc);
    const left = async (): Promise<Message[]> =>
      (await client.call("EventService", "ListEvents", { page_size: 1000 })).events as Message[];
    await eventually(async () => expect((await left()).length).toBeLessThanOrEqual(MAX_EVENTS + 5));
    const text = JSON.stringify(await left());
    expect(text).toContain('"owner_id":"the-last"');
    const oldest = (await left())[0];
    expect(Number(oldest?.sequence)).toBeGreaterThan(100);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
