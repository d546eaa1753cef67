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
    for (const [, specifier = ""] of source.matchAll(/\bfrom "(\.[^"]+)"/g)) {
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

test.each(["packages/server/src/isolation", "packages/server/src/runtime", "packages/server/src/service"])(
  "the folders of %s import one another one way only",
  (layer) => {
    const imports = importsBetween(layer);
    expect(imports.size).toBeGreaterThan(4);
    expect(goingRound(imports)).toEqual([]);
  },
);
