import { expect, test } from "vitest";
import { codeOf, openMock } from "./support.ts";

test("what is done is on record, in order", async () => {
  await using mock = await openMock();
  const { client, id, codebaseId } = mock;
  mock.engine.onCommand("make", { files: { "out/a": "a" } });
  await client.exec(id, "make");
  await client.writeFile(id, "out/b", "b");
  await client.applyChanges(id);
  await client.stopSandbox(id);
  await client.destroySandbox(id);
  const events = await client.listEvents({ codebaseId }).toArray();
  expect(events.map(({ type }) => type)).toEqual([
    "codebase_created",
    "sandbox_created",
    "sandbox_started",
    "command_executed",
    "file_written",
    "changes_applied",
    "sandbox_stopped",
    "sandbox_destroyed",
  ]);
  expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(events[3]).toMatchObject({
    level: "info",
    ownerId: "local",
    sandboxId: id,
    codebaseId,
    data: { command: "make", exit_code: 0, timed_out: false },
  });
  expect(new Set(events.map(({ hash }) => hash)).size).toBe(8);
});

test("refused file operations are on record with the rule that refused them", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  await codeOf(client.readFileBytes(id, "secrets/private.key"));
  await codeOf(client.readFileBytes(id, "docs/plan.md"));
  await codeOf(client.writeFile(id, "src/a.ts", "x"));
  await codeOf(client.writeFile(id, "secrets/new", "x"));
  const events = await client.listEvents({ sandboxId: id, types: ["permission_denied"] }).toArray();
  expect(events.map(({ level, data }) => [level, data.operation, data.path, data.permission, data.pattern])).toEqual([
    ["warn", "lookup", "/workspace/secrets/private.key", "none", "/secrets/**"],
    ["warn", "open", "/workspace/docs/plan.md", "view", "/docs/**"],
    ["warn", "open", "/workspace/src/a.ts", "read", "**/*"],
    ["warn", "lookup", "/workspace/secrets/new", "none", "/secrets/**"],
    ["warn", "create", "/workspace/secrets/new", "none", "/secrets/**"],
  ]);
});

test("a watch begins after a cursor and goes on with what happens", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const types: string[] = [];
  let asked = false;
  for await (const { type } of client.watchEvents({ sandboxId: id, afterSequence: 2 })) {
    types.push(type);
    if (type === "command_executed") break;
    if (!asked) void client.exec(id, "true");
    asked = true;
  }
  expect(types).toEqual(["sandbox_started", "command_executed"]);
});

test("lists are filtered by time and cut into pages", async () => {
  await using mock = await openMock();
  const { client } = mock;
  const all = await client.listEvents({ pageSize: 1 }).toArray();
  expect(all.length).toBe(3);
  expect(await client.listEvents({ after: new Date(Date.now() + 60_000) }).toArray()).toEqual([]);
  expect((await client.listEvents({ before: new Date(Date.now() + 60_000) }).toArray()).length).toBe(3);
});

test("the mock says what it is", async () => {
  await using mock = await openMock();
  expect(await mock.client.getServerInfo()).toMatchObject({ runtimes: ["mock"], keysRequired: false, role: "admin" });
});
