import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Event, EventService } from "@agentfense/protocol/event";
import { SystemService } from "@agentfense/protocol/system";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { openAudit } from "../../../src/runtime/audit/open-audit.ts";
import type { Caller } from "../../../src/runtime/caller.ts";
import { openKeys } from "../../../src/runtime/keys/open-keys.ts";
import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import { ADMIN, bench, refusalOf } from "./fixture.ts";

// Over the real keys and the real audit log, in a database of their own.

async function openPlace() {
  await using undo = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "agentfense-rpc-"));
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  const store = undo.use(await openSqliteStore({ path: join(directory, "metadata.db") }));
  const audit = undo.use(
    openAudit({ store, log: () => {}, retention: { maxAgeMs: 1e9, maxEvents: 1000 }, alerts: {} }),
  );
  const keys = openKeys({ store });
  const parts = undo.move();
  return {
    audit,
    keys,
    as: (caller: Caller) => {
      const { transport } = bench({ audit, keys }, { caller });
      return { system: createClient(SystemService, transport), events: createClient(EventService, transport) };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

test("a key that was made opens the door to its owner until it is revoked, and both are in the log", async () => {
  await using place = await openPlace();
  const { system, events } = place.as(ADMIN);
  const { key, secret } = await system.createKey({ ownerId: "bob", name: "ci" });
  expect(await place.keys.authenticate(secret)).toEqual({ ownerId: "bob", role: "user", keyId: key?.id });
  await system.revokeKey({ keyId: key!.id });
  await expect(place.keys.authenticate(secret)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  expect((await system.listKeys({})).keys).toMatchObject([{ ownerId: "bob", name: "ci" }]);
  expect(await refusalOf(system.revokeKey({ keyId: "key_unknown" }))).toMatchObject({
    code: "NotFound",
    reason: "KEY_NOT_FOUND",
  });
  const recorded = (await events.listEvents({})).events;
  expect(recorded.map(({ type, data }) => [type, data?.key_id])).toEqual([
    ["key_created", key?.id],
    ["key_revoked", key?.id],
  ]);
});

test("owners list and watch their own events, page by page, from a sequence on", async () => {
  await using place = await openPlace();
  for (const ownerId of ["bob", "alice", "bob", "alice", "bob"])
    place.audit.record({ type: "command_executed", ownerId });
  await place.audit.flush();
  const { events } = place.as({ ownerId: "bob", role: "user", keyId: "key_b" });

  const first = await events.listEvents({ pageSize: 2 });
  const second = await events.listEvents({ pageSize: 2, pageToken: first.nextPageToken });
  expect([first, second].map((page) => page.events.map(({ ownerId }) => ownerId))).toEqual([["bob", "bob"], ["bob"]]);
  expect(second.nextPageToken).toBe("");
  expect((await events.listEvents({ ownerId: "alice" })).events).toEqual([]);
  expect(await refusalOf(events.listEvents({ pageToken: "forged" }))).toMatchObject({ code: "InvalidArgument" });

  const controller = new AbortController();
  const seen: Event[] = [];
  const watching = (async () => {
    for await (const event of events.watchEvents({ afterSequence: 0n }, { signal: controller.signal })) {
      seen.push(event);
      if (seen.length === 3) {
        place.audit.record({ type: "sandbox_created", ownerId: "alice" });
        place.audit.record({ type: "sandbox_created", ownerId: "bob", data: { n: 1 } });
      }
      if (seen.length === 4) controller.abort();
    }
  })();
  expect(await refusalOf(watching)).toMatchObject({ code: "Canceled" });
  expect(seen.map(({ ownerId, type }) => `${ownerId} ${type}`)).toEqual([
    "bob command_executed",
    "bob command_executed",
    "bob command_executed",
    "bob sandbox_created",
  ]);
  expect(seen.at(-1)).toMatchObject({ data: { n: 1 }, hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
});
