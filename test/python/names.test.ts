import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ONLY_IN_PYTHON, ONLY_IN_TYPESCRIPT, RENAMED } from "./intended-differences.ts";
import { typescriptNames } from "./typescript-names.ts";

const repository = join(import.meta.dirname, "../..");
const RENAMES = Object.values(RENAMED).flatMap((names) => Object.entries(names));

describe("the public names of the two SDKs", () => {
  const original = distinct(typescriptNames(join(repository, "packages/sdk/src/index.ts")));
  const typescript = original.map(renamed);
  const bothFaces = pythonNames();
  const python = bothFaces.filter((line) => !line.startsWith("Async"));

  test("of Python are the same for both of its faces", () => {
    const asynchronous = bothFaces.filter((line) => line.startsWith("Async")).map((line) => line.slice("Async".length));
    const classes = asynchronous.filter((line) => /^\w+$/.test(line));
    expect(classes.length).toBeGreaterThan(1);
    expect(asynchronous).toEqual(python.filter((line) => classes.some((name) => isBelow(line, name))));
  });

  test("differ only where they are meant to", () => {
    expect({
      typescript: explained(without(typescript, python), ONLY_IN_TYPESCRIPT),
      python: explained(without(python, typescript), ONLY_IN_PYTHON),
      stale: RENAMES.filter(([name]) => !original.some((line) => isBelow(line, name))),
    }).toEqual({ typescript: { unexplained: [], stale: [] }, python: { unexplained: [], stale: [] }, stale: [] });
  });
});

function pythonNames(): string[] {
  const program = join(repository, ".cache/python-sdk/bin/python");
  const output = execFileSync(program, ["-B", join(import.meta.dirname, "public_names.py")], {
    encoding: "utf8",
    env: { ...process.env, PYTHONPATH: join(repository, "python/src") },
  });
  return distinct(JSON.parse(output) as string[]);
}

/** What no row speaks of, and rows that speak of nothing any more. */
function explained(lines: readonly string[], rows: Readonly<Record<string, readonly string[]>>): object {
  const names = Object.values(rows).flat();
  return {
    unexplained: lines.filter((line) => !names.some((name) => isBelow(line, name))),
    stale: names.filter((name) => !lines.some((line) => isBelow(line, name))),
  };
}

function renamed(line: string): string {
  const [name, pythonName] = RENAMES.find(([candidate]) => isBelow(line, candidate)) ?? ["", ""];
  if (name.startsWith("*")) return line.slice(0, 1 - name.length) + pythonName.slice(1);
  return pythonName + line.slice(name.length);
}

/** Whether it is this name or belongs to it, as members, parameters and words do. */
function isBelow(line: string, name: string): boolean {
  if (name.startsWith("*")) return line.endsWith(name.slice(1));
  return line === name || (line.startsWith(name) && /^[.(: ]/.test(line.slice(name.length)));
}

function without(lines: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
}

function distinct(lines: readonly string[]): string[] {
  return [...new Set(lines)].sort();
}
