import { getPreset } from "@agentfense/permission";
import { expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox } from "../../support/belongings.ts";
import { GrpcClient, type Message } from "../../support/grpc-client.ts";
import { RestClient } from "../../support/rest-client.ts";
import { TestServer } from "../../support/server.ts";

test("P-37 rules without a preset are exactly those rules; with one, the preset's come first", async () => {
  await using server = await TestServer.start();
  using client = new GrpcClient(server.grpc);
  const rest = new RestClient(server.http);
  const codebase_id = await makeCodebase(client, { "a.txt": "a", ".env": "s", "output/o.txt": "o" }, "owner");
  const own: Message[] = [
    { pattern: "/output/o.txt", permission: "PERMISSION_READ", priority: 7 },
    { pattern: "**/.env*", permission: "PERMISSION_VIEW", priority: 100 },
    { pattern: "/a.txt", permission: "PERMISSION_NONE", priority: -1 },
  ];
  const preset = getPreset("agent-safe").map(({ pattern, permission, priority = 0 }) => ({
    pattern,
    permission: `PERMISSION_${permission.toUpperCase()}`,
    priority,
  }));
  const shapeOf = ({ permissions }: Message): unknown =>
    (permissions as Message[]).map(({ pattern, permission, priority }) => ({ pattern, permission, priority }));

  const plain = await client.call("SandboxService", "CreateSandbox", { codebase_id, permissions: own });
  expect(shapeOf(plain)).toEqual(own);
  const both = await client.call("SandboxService", "CreateSandbox", {
    codebase_id,
    permissions: own,
    preset: "agent-safe",
  });
  expect(shapeOf(both)).toEqual([...preset, ...own]);
  const alone = await rest.post("/v1/sandboxes", { codebaseId: codebase_id, preset: "agent-safe" });
  expect(shapeOf(alone.json)).toEqual(preset);
  const none = await rest.post("/v1/sandboxes", { codebaseId: codebase_id });
  expect(shapeOf(none.json)).toEqual([]);

  const sandbox_id = both.id;
  expect(shapeOf(await client.call("SandboxService", "GetSandbox", { sandbox_id }))).toEqual([...preset, ...own]);
  const update = { sandbox_id, permissions: own };
  expect(shapeOf(await client.call("SandboxService", "UpdatePermissions", update))).toEqual(own);
  const back = await client.call("SandboxService", "UpdatePermissions", { ...update, preset: "agent-safe" });
  expect(shapeOf(back)).toEqual([...preset, ...own]);

  // And they do what they say: the caller's own come after, so that the same pattern again is theirs.
  const running = await makeSandbox(client, codebase_id, { permissions: own, preset: "agent-safe" });
  const { stdout } = await exec(
    client,
    running,
    "ls -A; cat .env; echo x > output/o.txt; echo x > output/new.txt && echo written",
  );
  expect(stdout).toBe(".env\na.txt\noutput\nwritten\n");
});
