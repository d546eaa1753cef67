import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The titles of all tests in the repository, as they are written, those of suites that several files run included. */
export function testTitles(root: string): string[] {
  const patterns = ["test/**/*.{test,suite}.ts", "packages/*/test/**/*.test.ts"];
  const paths = globSync(patterns, { cwd: root, exclude: ["**/node_modules"] });
  return paths.flatMap((path) => titlesIn(readFileSync(join(root, path), "utf8")));
}

/** `test("…"` and `it("…"`, with any chain of modifiers and any quotes. Skipped and unwritten tests prove nothing. */
export function titlesIn(source: string): string[] {
  const calls = source.matchAll(/\b(?:test|it)((?:\.\w+(?:\([^()]*\))?)*)\(\s*(["'`])((?:\\.|(?!\2).)*)\2/gs);
  return [...calls].flatMap(([, modifiers = "", , title = ""]) =>
    /\.(skip|todo|fails)\b/.test(modifiers) ? [] : [title],
  );
}
