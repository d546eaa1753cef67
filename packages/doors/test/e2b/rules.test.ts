import { afterAll, beforeAll, expect, test } from "vitest";
import { e2bDoors } from "../../src/e2b/door.ts";
import type { E2bTemplate } from "../../src/e2b/templates.ts";
import { DoorServer } from "../aio/door-server.ts";

// A template with a codebase and rules. What clients of E2B do is in test/e2b.

const PERMISSIONS = [
  { pattern: "**", permission: "read" },
  { pattern: "/.env", permission: "none", priority: 1 },
  { pattern: "/keys/**", permission: "none", priority: 1 },
] as const;

const project: { -readonly [Name in keyof E2bTemplate]: E2bTemplate[Name] } = { permissions: PERMISSIONS };
let server: DoorServer;
let headers: Record<string, string>;
beforeAll(async () => {
  const [door] = e2bDoors({ templates: { project } });
  server = await DoorServer.openWith(door!);
  const files = { "a.txt": "open\n", ".env": "SECRET=canary\n", "keys/id.pem": "canary\n" };
  project.codebase = (await server.sandbox(files, [{ pattern: "**", permission: "read" }])).info.codebaseId;
  const made = await fetch(`${server.origin}/e2b/v2/sandboxes`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "any" },
    body: JSON.stringify({ templateID: "project" }),
  });
  expect(made.status).toBe(201);
  const { sandboxID, envdAccessToken } = (await made.json()) as Record<string, string>;
  headers = { "e2b-sandbox-id": sandboxID!, "x-access-token": envdAccessToken! };
});
afterAll(async () => await server?.[Symbol.asyncDispose]());

async function ask(method: string, body: object): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await fetch(`${server.origin}/e2b/filesystem.Filesystem/${method}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

test("what its rules hide is in no list, and answers like what is not there", async () => {
  const listed = await ask("ListDir", { path: ".", depth: 3 });
  expect(listed.status).toBe(200);
  expect((JSON.parse(listed.text) as { entries: { path: string }[] }).entries.map(({ path }) => path)).toEqual([
    "/home/user/a.txt",
  ]);
  const without = (text: string) => text.replaceAll(/\.env|keys\/id\.pem|nothing/g, "NAME");
  for (const hidden of [".env", "keys/id.pem"]) {
    expect(without((await ask("Stat", { path: hidden })).text)).toBe(
      without((await ask("Stat", { path: "nothing" })).text),
    );
    for (const place of ["", "/workspace/", "/tmp/../home/user/"]) {
      const answer = await fetch(`${server.origin}/e2b/files?path=${place}${hidden}`, { headers });
      expect([answer.status, await answer.text()]).toEqual([404, expect.not.stringContaining("canary")]);
    }
  }
});

test("what may only be read is not written, moved or removed", async () => {
  const write = await fetch(`${server.origin}/e2b/files?path=a.txt`, {
    ...{ method: "POST", body: "changed" },
    headers: { ...headers, "content-type": "application/octet-stream" },
  });
  expect([write.status, await write.json()]).toMatchObject([403, { code: 403 }]);
  expect((await ask("Move", { source: "a.txt", destination: "b.txt" })).status).toBe(403);
  expect((await ask("Remove", { path: "a.txt" })).status).toBe(403);
  expect(await (await fetch(`${server.origin}/e2b/files?path=a.txt`, { headers })).text()).toBe("open\n");
});
