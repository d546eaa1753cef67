import { createHash } from "node:crypto";
import { beforeEach, expect, test, vi } from "vitest";
import type { Keys } from "../../../src/runtime/keys/api.ts";
import { openKeys } from "../../../src/runtime/keys/open-keys.ts";
import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";
import { temporaryStore } from "../store/temporary.ts";

let store: MetadataStore;
let path: string;
let keys: Keys;
let nowMs: number;

beforeEach(async () => {
  ({ store, path } = await temporaryStore());
  nowMs = 1_000_000;
  keys = openKeys({ store, clock: () => nowMs });
});

const refused = expect.objectContaining({ code: "UNAUTHENTICATED", message: "the API key is not valid" });

test("a secret opens what its key stands for", async () => {
  const user = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  const reader = await keys.create({ ownerId: "ann", role: "read-only", name: "" });
  const admin = await keys.create({ ownerId: "", role: "admin", name: "operator" });
  expect(await keys.authenticate(user.secret)).toEqual({ ownerId: "ann", role: "user", keyId: user.key.id });
  expect(await keys.authenticate(reader.secret)).toEqual({ ownerId: "ann", role: "read-only", keyId: reader.key.id });
  expect(await keys.authenticate(admin.secret)).toEqual({ ownerId: undefined, role: "admin", keyId: admin.key.id });
});

test("the store has the hash of a secret and nothing else of it", async () => {
  const { key, secret } = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  expect(secret).toMatch(/^af_key_[0-9a-f]{32}_[A-Za-z0-9_-]{43}$/);
  expect(await keys.list()).toEqual([key]);
  expect(key).toEqual({
    id: secret.slice(3, 39),
    ownerId: "ann",
    role: "user",
    name: "laptop",
    secretHash: createHash("sha256").update(secret).digest("hex"),
    createdAtMs: 1_000_000,
  });
});

test("a wrong secret, an unknown key and a revoked one are refused in the same words", async () => {
  const { key, secret } = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  const other = await keys.create({ ownerId: "ben", role: "user", name: "laptop" });
  const last = secret.endsWith("A") ? "B" : "A";
  await expect(keys.authenticate(secret.slice(0, -1) + last)).rejects.toEqual(refused);
  await expect(keys.authenticate(secret.slice(0, 40) + other.secret.slice(40))).rejects.toEqual(refused);
  await expect(keys.authenticate(`af_key_${"0".repeat(32)}_${"A".repeat(43)}`)).rejects.toEqual(refused);
  await keys.revoke(key.id);
  await expect(keys.authenticate(secret)).rejects.toEqual(refused);
  expect(await keys.authenticate(other.secret)).toMatchObject({ ownerId: "ben" });
});

test("what has not the shape of a secret is refused without asking the store", async () => {
  const { secret } = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  const lookup = vi.spyOn(store, "key");
  const malformed = ["", "af_", secret.toUpperCase(), ` ${secret}`, `${secret}\n`, secret.slice(0, -1), `${secret}A`];
  for (const text of [...malformed, secret.replace("key_", "KEY_"), "x".repeat(1_000_000), `${secret.slice(0, -1)}ä`]) {
    await expect(keys.authenticate(text)).rejects.toEqual(refused);
  }
  expect(lookup).not.toHaveBeenCalled();
});

test("a key that another process revokes is refused at once", async () => {
  const { key, secret } = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  await keys.authenticate(secret);
  await using commandLine = await openSqliteStore({ path });
  await openKeys({ store: commandLine }).revoke(key.id);
  await expect(keys.authenticate(secret)).rejects.toEqual(refused);
});

test("the last use is written at most once a minute", async () => {
  const { secret } = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  const touch = vi.spyOn(store, "touchKey");
  await Promise.all(Array.from({ length: 20 }, () => keys.authenticate(secret)));
  nowMs += 59_999;
  await keys.authenticate(secret);
  expect(touch).toHaveBeenCalledTimes(1);
  nowMs += 1;
  await keys.authenticate(secret);
  expect(touch).toHaveBeenCalledTimes(2);
  expect((await keys.list())[0]?.lastUsedAtMs).toBe(1_060_000);
});

test("a wrong secret does not count as a use", async () => {
  const { secret } = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  await expect(keys.authenticate(`${secret.slice(0, 40)}${"A".repeat(43)}`)).rejects.toEqual(refused);
  expect((await keys.list())[0]?.lastUsedAtMs).toBeUndefined();
});

test("revoking what is not there is KEY_NOT_FOUND, and revoking twice is not", async () => {
  const { key } = await keys.create({ ownerId: "ann", role: "user", name: "laptop" });
  await keys.revoke(key.id);
  nowMs += 5;
  await keys.revoke(key.id);
  expect((await keys.list())[0]?.revokedAtMs).toBe(1_000_000);
  for (const id of ["", "key_1", `key_${"0".repeat(32)}`, "../../x"]) {
    await expect(keys.revoke(id)).rejects.toMatchObject({ code: "KEY_NOT_FOUND" });
  }
});

test.for([
  ["an empty owner", { ownerId: "", role: "user", name: "x" }, "owner_id must not be empty"],
  ["a long owner", { ownerId: "a".repeat(129), role: "user", name: "x" }, "owner_id must have at most 128 characters"],
  ["a long name", { ownerId: "a", role: "user", name: "n".repeat(129) }, "name must have at most 128 characters"],
  ["a line feed", { ownerId: "a\nb", role: "user", name: "x" }, "owner_id must not contain control characters"],
  [
    "an escape sequence",
    { ownerId: "a", role: "user", name: "\u001b[31m" },
    "name must not contain control characters",
  ],
  [
    "a bidirectional override",
    { ownerId: "a", role: "user", name: "a\u202eb" },
    "name must not contain control characters",
  ],
  [
    "half a character",
    { ownerId: "a\ud800", role: "admin", name: "x" },
    "owner_id must not contain control characters",
  ],
] as const)("%s is refused", async ([, request, message]) => {
  await expect(keys.create(request)).rejects.toMatchObject({ code: "INVALID_ARGUMENT", message });
  expect(await keys.list()).toEqual([]);
});

test("a role that does not exist is refused", async () => {
  const request = { ownerId: "a", role: "root", name: "x" } as unknown as Parameters<Keys["create"]>[0];
  await expect(keys.create(request)).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
});
