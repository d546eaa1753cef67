import { expect } from "vitest";

/** Facts of any depth as one table: { unshare: { NET: "EPERM" } } becomes { "unshare NET": "EPERM" }. */
export function flat(facts: unknown, name = ""): Record<string, string> {
  if (typeof facts !== "object" || facts === null) return { [name]: String(facts) };
  return Object.fromEntries(
    Object.entries(facts).flatMap(([key, value]) => Object.entries(flat(value, name === "" ? key : `${name} ${key}`))),
  );
}

/** Fails when one of the texts occurs anywhere in the facts; shows where. */
export function expectNowhere(facts: unknown, texts: readonly string[]): void {
  const found = Object.entries(flat(facts)).filter(([name, value]) =>
    texts.some((text) => value.includes(text) || name.includes(text)),
  );
  expect(Object.fromEntries(found), `none of ${texts.join(", ")} may be readable inside`).toEqual({});
}

/** What a file answers that is not there, or not for this user. */
export const NO_FILE = ["ENOENT", "EACCES", "EPERM", "EROFS", "ENOTDIR", "ENXIO"] as const;
