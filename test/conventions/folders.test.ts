import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");

/** The folders below one, with those that each imports from. */
function importsBetween(layer: string): ReadonlyMap<string, ReadonlySet<string>> {
  const imports = new Map<string, Set<string>>();
  for (const file of globSync("*/**/*.ts", { cwd: join(repository, layer) })) {
    const folder = file.split("/")[0]!;
    const found = imports.get(folder) ?? new Set();
    imports.set(folder, found);
    const source = readFileSync(join(repository, layer, file), "utf8");
    for (const [, specifier = ""] of source.matchAll(/\b(?:from |import\()"(\.[^"]+)"/g)) {
      const [target = "", ...rest] = normalize(join(dirname(file), specifier)).split("/");
      if (rest.length > 0 && target !== ".." && target !== folder) found.add(target);
    }
  }
  return imports;
}

/** Takes away folders that import none of those left; what remains goes round. */
function goingRound(imports: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const left = new Set(imports.keys());
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const folder of left) if (![...imports.get(folder)!].some((other) => left.has(other))) left.delete(folder);
  }
  return [...left].sort();
}

const folders = globSync("packages/*/src/**/", { cwd: repository, exclude: ["**/generated"] })
  .map((folder) => folder.replace(/\/$/, ""))
  .filter((folder) => importsBetween(folder).size > 1);

test("the folders in each folder of the source import one another one way only", () => {
  expect(folders).toEqual(expect.arrayContaining(["packages/server/src", "packages/server/src/isolation"]));
  expect(folders.flatMap((folder) => goingRound(importsBetween(folder)).map((name) => `${folder}/${name}`))).toEqual(
    [],
  );
});
