import { describe, expect, test } from "vitest";
import type { Caller } from "../../../src/runtime/caller.ts";
import { ADMIN, ALICE, bench, call, callJson, METHODS, type RuntimeParts, refusalOf } from "./fixture.ts";
import { EXAMPLES, type MethodExample } from "./methods.ts";

const ADMIN_METHODS = ["CreateKey", "ListKeys", "RevokeKey"];

/** A runtime that answers one question, and what it was asked. */
function answering({ asks, answer }: MethodExample): { parts: RuntimeParts; asked: unknown[] } {
  const asked: unknown[] = [];
  const info = { runtimes: ["docker", "bwrap"] as const, degradations: () => ["no cgroups"] };
  if (asks === undefined) return { parts: { info }, asked };
  const [part, member] = asks[0].split(".") as [keyof RuntimeParts, string];
  const method = (...args: unknown[]) => {
    const value: unknown = typeof answer === "function" ? answer() : answer;
    const readFirst = Promise.all(args.map(readable)).then((plain) => asked.push(...plain));
    // Streams come from the method itself, everything else from a promise.
    if (STREAMS.has(asks[0])) return value;
    return readFirst.then(() => value);
  };
  return { parts: { audit: { record: () => {} }, info, [part]: { [member]: method } } as RuntimeParts, asked };
}

const STREAMS = new Set([
  "sandboxes.execStream",
  "sandboxes.sessionExecStream",
  "sandboxes.runCode",
  "sandboxes.diff",
  "audit.watch",
]);

async function readable(value: unknown): Promise<unknown> {
  if (value instanceof AbortSignal) return "signal";
  if (typeof value === "object" && value !== null && Symbol.asyncIterator in value) {
    const items = await Array.fromAsync(value as AsyncIterable<unknown>);
    return items.map((item) => (item instanceof Uint8Array ? Buffer.from(item).toString() : item));
  }
  if (typeof value === "object" && value !== null && "signal" in value && value.signal instanceof AbortSignal) {
    const members = Object.entries(value).map(async ([name, member]) => [name, await readable(member)] as const);
    return Object.fromEntries(await Promise.all(members));
  }
  return value;
}

test("every method of the contract has an example", () => {
  expect(Object.keys(EXAMPLES).toSorted()).toEqual([...METHODS.keys()].toSorted());
});

describe.each(Object.entries(EXAMPLES))("%s", (name, example) => {
  const caller: Caller = ADMIN_METHODS.includes(name) || name === "GetServerInfo" ? ADMIN : ALICE;

  test("asks the runtime in its words and answers in those of the contract", async () => {
    const { parts, asked } = answering(example);
    const { transport } = bench(parts, { caller });
    expect(await callJson(transport, name, example.requests)).toEqual(example.responses);
    const [, ...args] = example.asks ?? [];
    const withCaller = example.asks?.[0].startsWith("keys.") ? args : [caller, ...args];
    expect(asked).toEqual(example.asks === undefined ? [] : withCaller);
  });

  test("is refused to callers that nobody authenticated", async () => {
    const { transport } = bench({}, { caller: undefined });
    expect(await refusalOf(call(transport, name, example.requests))).toMatchObject({
      code: "Unauthenticated",
      reason: "UNAUTHENTICATED",
    });
  });
});

test.each(ADMIN_METHODS)("%s is for administrators", async (name) => {
  const { transport } = bench({}, { caller: ALICE });
  expect(await refusalOf(call(transport, name, EXAMPLES[name]!.requests))).toEqual({
    code: "PermissionDenied",
    message: "only an administrator may manage keys",
    reason: "ROLE_FORBIDS",
    metadata: { role: "user" },
  });
});

test.each(ADMIN_METHODS)(
  "%s is refused to everybody else for that, whatever the request says or lacks",
  async (name) => {
    const { transport } = bench({}, { caller: ALICE });
    expect(await refusalOf(call(transport, name, [{}]))).toMatchObject({ reason: "ROLE_FORBIDS" });
  },
);

test("a key is made and revoked in the audit log's sight, without its secret", async () => {
  const recorded: unknown[] = [];
  const admin: Caller = { ownerId: undefined, role: "admin", keyId: "key_root" };
  const answer = EXAMPLES.CreateKey!.answer as Awaited<
    ReturnType<NonNullable<NonNullable<RuntimeParts["keys"]>["create"]>>
  >;
  const { transport } = bench(
    {
      keys: { create: async () => answer, revoke: async () => {} },
      audit: { record: (entry) => void recorded.push(entry) },
    },
    { caller: admin },
  );
  await call(transport, "CreateKey", EXAMPLES.CreateKey!.requests);
  await call(transport, "RevokeKey", EXAMPLES.RevokeKey!.requests);
  expect(recorded).toEqual([
    {
      type: "key_created",
      ownerId: "bob",
      keyId: "key_root",
      data: { key_id: "key_1", role: "read-only", name: "ci" },
    },
    { type: "key_revoked", keyId: "key_root", data: { key_id: "key_1" } },
  ]);
});

test("GetServerInfo tells a key's owner and role", async () => {
  const { transport } = bench({}, { caller: ALICE });
  expect(await callJson(transport, "GetServerInfo", [{}])).toEqual([
    { version: "1.2.3", runtimes: ["RUNTIME_TYPE_BWRAP"], keysRequired: true, ownerId: "alice", role: "ROLE_USER" },
  ]);
});
