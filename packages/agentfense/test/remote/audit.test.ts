import { once } from "node:events";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { aWhile } from "../../../../test/support/eventually.ts";
import { scriptedServer } from "./scripted-server.ts";

const event = (sequence: bigint, seconds: bigint) => ({
  sequence,
  time: { seconds, nanos: 0 },
  type: "permission_denied",
  level: "warn",
  ownerId: "alice",
  sandboxId: "sb_1",
  data: { path: "/.env\u001b[2J", suppressed: 3 },
});

test("audit list asks with its filters, goes through the pages, and then follows", async () => {
  const asked: unknown[] = [];
  const server = await scriptedServer({
    events: {
      listEvents({ sandboxId, ownerId, types, after, pageToken }) {
        asked.push([sandboxId, ownerId, types, after === undefined ? undefined : timestampMs(after), pageToken]);
        return pageToken === "" ? { events: [event(7n, 10n)], nextPageToken: "n" } : { events: [event(8n, 11n)] };
      },
      async *watchEvents({ afterSequence, types }) {
        asked.push([afterSequence, types]);
        yield event(9n, 1n);
        yield event(10n, 12n);
      },
    },
  });
  const since = "1970-01-01T00:00:05Z";
  const args = ["audit", "list", "--sandbox", "sb_1", "--owner", "a", "--type", "x", "--type", "y", "--since", since];
  const { code, stdout } = await server.run([...args, "--follow"]);
  const line = (sequence: number, second: number) =>
    `${sequence}  1970-01-01T00:00:${second}Z  warn   permission_denied  alice  sb_1  path=/.env\\x1b[2J  suppressed=3\n`;
  expect({ code, stdout }).toEqual({ code: 0, stdout: line(7, 10) + line(8, 11) + line(10, 12) });
  expect(asked).toEqual([
    ["sb_1", "a", ["x", "y"], 5000, ""],
    ["sb_1", "a", ["x", "y"], 5000, "n"],
    [8n, ["x", "y"]],
  ]);
});

test("audit watch --json prints one object a line", async () => {
  const server = await scriptedServer({
    events: {
      async *watchEvents({ afterSequence }) {
        yield event(afterSequence ?? -1n, 10n);
        yield event(2n, 10n);
      },
    },
  });
  const { stdout } = await server.run(["audit", "watch", "--json", "--after", "5"]);
  expect(
    stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).sequence),
  ).toEqual(["5", "2"]);
});

test("keys are made, listed and revoked over the API", async () => {
  const server = await scriptedServer({
    system: {
      createKey: ({ ownerId, role, name }) => ({ key: { id: "key_1", ownerId, role, name }, secret: "af_secret" }),
      listKeys: () => ({ keys: [{ id: "key_1", ownerId: "alice", role: 3, name: "ci", createdAt: { seconds: 0n } }] }),
      revokeKey: () => ({}),
    },
  });
  const created = await server.run(["key", "create", "--owner", "alice", "--role", "read-only"]);
  expect(created).toEqual({
    code: 0,
    stdout: "af_secret\n",
    stderr: "agentfense: key key_1 for alice (read-only); keep it, it is not shown again\n",
  });
  const { stdout } = await server.run(["key", "list", "--json"]);
  expect(JSON.parse(stdout)).toEqual([
    {
      id: "key_1",
      ownerId: "alice",
      role: "read-only",
      name: "ci",
      createdAt: "1970-01-01T00:00:00Z",
      revokedAt: "",
      lastUsedAt: "",
    },
  ]);
  expect((await server.run(["key", "revoke", "key_1"])).stdout).toBe("revoked key_1\n");
});

test("a server that goes away while we watch is one line and a hint", async () => {
  const server = await scriptedServer({
    events: {
      async *watchEvents(_request, { signal }) {
        yield event(1n, 10n);
        void aWhile(50).then(() => server.end());
        await once(signal, "abort");
      },
    },
  });
  const { code, stderr } = await server.run(["audit", "watch"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^agentfense: .*\nhint: .*\n$/) });
});
