import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { keyIdOf, type Purpose, SealingKeys } from "../../../src/runtime/secrets/sealing.ts";

const VALUE = "sk-ant-api03-Kk1Jj2Hh3Gg4Ff5Dd6Ss7Aa8";
const newKey = (): string => randomBytes(32).toString("base64");
const PURPOSE: Purpose = ["owner", "alice", "KEY", ["api.test"], "bearer"];

test("what is sealed opens for what it was sealed for, and for nothing else", () => {
  const keys = SealingKeys.ofProcess();
  const sealed = keys.seal(VALUE, PURPOSE);
  expect(sealed).not.toContain(VALUE);
  expect(keys.open(sealed, PURPOSE)).toBe(VALUE);
  for (const [index, part] of PURPOSE.entries()) {
    const other = PURPOSE.with(index, typeof part === "string" ? `${part}x` : [...part, "evil.test"]);
    expect(keys.open(sealed, other), JSON.stringify(other)).toBeUndefined();
  }
  // Two parts are not one that looks like both.
  expect(keys.open(keys.seal(VALUE, ["a", "b"]), ["ab"])).toBeUndefined();
});

test("no two seals of a value look alike, and one that was altered in any character does not open", () => {
  const keys = SealingKeys.ofProcess();
  const sealed = keys.seal(VALUE, PURPOSE);
  expect(keys.seal(VALUE, PURPOSE)).not.toBe(sealed);
  const bytes = Buffer.from(sealed.split(".")[2]!, "base64url");
  for (let index = 0; index < bytes.length; index += 1) {
    const altered = Buffer.from(bytes);
    altered[index]! ^= 1;
    expect(keys.open(`1.${keys.id}.${altered.toString("base64url")}`, PURPOSE)).toBeUndefined();
  }
  for (const text of ["", "1", `1.${keys.id}.`, `1.${keys.id}.AAAA`, `2.${sealed.slice(2)}`, sealed.slice(0, -8)]) {
    expect(keys.open(text, PURPOSE), text).toBeUndefined();
  }
});

test("the first key of a file seals, each opens what it has sealed, and a seal says which key it needs", () => {
  const [old, next] = [newKey(), newKey()];
  const before = SealingKeys.parse(`# made in spring\n${old}\n`);
  const sealed = before.seal(VALUE, PURPOSE);
  const both = SealingKeys.parse(`${next}\r\n\n${old}`);
  expect(both.open(sealed, PURPOSE)).toBe(VALUE);
  expect(both.id).not.toBe(before.id);
  expect([keyIdOf(sealed), keyIdOf(both.seal(VALUE, PURPOSE))]).toEqual([before.id, both.id]);
  const after = SealingKeys.parse(next);
  expect([after.has(before.id), after.open(sealed, PURPOSE)]).toEqual([false, undefined]);
});

test("a file that is none is refused by line, without what it says", () => {
  const wrong = "not-a-key-but-maybe-a-password";
  for (const [text, message] of [
    ["# nothing\n", "it has no key"],
    [`${newKey()}\n${wrong}\n`, "line 2 is no key: 32 random bytes in base64 are"],
    [randomBytes(16).toString("base64"), "line 1 is no key: 32 random bytes in base64 are"],
    [randomBytes(48).toString("base64"), "line 1 is no key: 32 random bytes in base64 are"],
  ] as const) {
    expect(() => SealingKeys.parse(text)).toThrow(new Error(message));
  }
});
