import { nameText } from "@agentfense/permission";
import { expect, test } from "vitest";
import { paintFor, printable } from "../src/terminal.ts";

test("a name that is UTF-8 prints as it is", () => {
  expect(printable("Grüße 日本 🙂.md")).toBe("Grüße 日本 🙂.md");
});

test.each([
  ["a\nb\tc\rd", "a\\nb\\tc\\rd"],
  ["\u001b]0;title\u0007", "\\x1b]0;title\\x07"],
  ["\u009b31m", "\\x9b31m"],
  ["\u202egpj.exe", "\\u{202e}gpj.exe"],
  ["zero\u200bwidth", "zero\\u{200b}width"],
  ["\u{e0041}tag", "\\u{e0041}tag"],
  ["back\\slash", "back\\\\slash"],
])("%j prints as %j", (name, shown) => {
  expect(printable(name)).toBe(shown);
});

test("bytes that are not UTF-8 become one lone surrogate each and print as \\xNN", () => {
  const name = nameText(Buffer.from([0x61, 0xff, 0xc3, 0xa9, 0xe2, 0x82, 0x62]));
  expect(name).toBe("a\udcffé\udce2\udc82b");
  expect(printable(name)).toBe("a\\xffé\\xe2\\x82b");
});

test("an encoded surrogate is not UTF-8: its bytes are kept apart", () => {
  expect(nameText(Buffer.from([0xed, 0xb3, 0xbf]))).toBe("\udced\udcb3\udcbf");
});

test.each([
  [{ NO_COLOR: "1", FORCE_COLOR: "1" }, true, false],
  [{ NO_COLOR: "" }, true, true],
  [{ FORCE_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "0" }, true, false],
  [{}, true, true],
  [{}, false, false],
])("with %j and a terminal: %j, colours: %j", (environment, isTTY, coloured) => {
  expect(paintFor({ isTTY }, environment)("read", "x") !== "x").toBe(coloured);
});
