import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REQUIREMENTS } from "./requirements.ts";

const ID = /^(?:P|L|DISC|VIEW|RO|ESC|RES|API|SYNC|NET|BR|DOOR|LIVE|CL)-\d+(?= )/;
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

/** The titles of all tests in the repository, as they are written, those of suites that several files run included. */
function testTitles(root: string): string[] {
  const patterns = ["test/**/*.{test,suite}.ts", "packages/*/test/**/*.test.ts"];
  const paths = globSync(patterns, { cwd: root, exclude: ["**/node_modules"] });
  return paths.flatMap((path) => titlesIn(readFileSync(join(root, path), "utf8")));
}

/** `test("…"` and `it("…"`, with any chain of modifiers and any quotes. Skipped and unwritten tests prove nothing. */
function titlesIn(source: string): string[] {
  const calls = source.matchAll(/\b(?:test|it)((?:\.\w+(?:\([^()]*\))?)*)\(\s*(["'`])((?:\\.|(?!\2).)*)\2/gs);
  return [...calls].flatMap(([, modifiers = "", , title = ""]) =>
    /\.(skip|todo|fails)\b/.test(modifiers) ? [] : [title],
  );
}
