import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REQUIREMENTS } from "./requirements.ts";
import { testTitles, titlesIn } from "./titles.ts";

const ID = /^(?:P|L|DISC|VIEW|RO|ESC|RES|API|SYNC|NET)-\d+(?= )/;
const proven = new Set(testTitles(join(import.meta.dirname, "../..")).flatMap((title) => title.match(ID) ?? []));
const known = new Map(REQUIREMENTS.map((requirement) => [requirement.id, requirement]));

describe("requirements", () => {
  test("each has a test whose title begins with its id, or says what takes its place", () => {
    const unproven = REQUIREMENTS.filter(({ id, shownBy, later }) => {
      if (later !== undefined) return false;
      return shownBy === undefined ? !proven.has(id) : !shownBy.every((other) => proven.has(other));
    });
    expect(unproven.map(({ id, sentence }) => `${id} ${sentence}`)).toEqual([]);
  });

  test("ids are unique, and every id in a title is known", () => {
    expect(known.size).toBe(REQUIREMENTS.length);
    expect([...proven].filter((id) => !known.has(id))).toEqual([]);
  });

  test("what is left for later has no test yet", () => {
    expect(REQUIREMENTS.filter(({ id, later }) => later !== undefined && proven.has(id)).map(({ id }) => id)).toEqual(
      [],
    );
  });

  test("titles are found in every form a test can be written", () => {
    const source = [
      'test("A one", () => {});',
      "it('B two', () => {});",
      "test(\n  `C three`,\n  run);",
      'test.skipIf(reason)("D four", run);',
      'test.for([1])("E five", run);',
      'test.skip("F not run", run);',
      'test.todo("G not written");',
    ].join("\n");
    expect(titlesIn(source)).toEqual(["A one", "B two", "C three", "D four", "E five"]);
  });
});
