import { expect, test } from "vitest";
import { namesIn, nameText } from "../src/index.ts";

test.each([
  ["/a//b/", ["a", "b"]],
  ["./a/./b", ["a", "b"]],
  ["a/../b", ["a", "..", "b"]],
  ["/", []],
  ["", []],
])("the names of %j", (path, names) => {
  expect(namesIn(path)).toEqual(names);
});

test("every name of bytes has a text of its own: what is valid UTF-8 as it is, every other byte as a surrogate", () => {
  const text = (...bytes: number[]) => nameText(Uint8Array.from(bytes));
  expect(text(0x61, 0xc3, 0xbc, 0x7a)).toBe("aüz");
  expect(text(0xef, 0xbb, 0xbf, 0x61)).toBe("\ufeffa");
  expect(text(0x61, 0xff, 0xc3, 0xbc)).toBe("a\udcffü");
  // Too long a form of "/", a surrogate, and a sequence that is cut off are no UTF-8.
  expect(text(0xc0, 0xaf)).toBe("\udcc0\udcaf");
  expect(text(0xed, 0xa0, 0x80)).toBe("\udced\udca0\udc80");
  expect(text(0x61, 0xe2, 0x82)).toBe("a\udce2\udc82");
});
