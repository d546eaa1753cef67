import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CONTRACT } from "../support/every-method.ts";
import { COVERAGE } from "./coverage.ts";

test("every method of sandbox.v1 is called by a file of this folder", () => {
  const covered = Object.values(COVERAGE).flat().sort();
  expect(covered).toEqual(CONTRACT.map(({ service, name }) => `${service}.${name}`).sort());
});

test.each(Object.keys(COVERAGE))("%s.test.ts fails when it did not call what it covers", (area) => {
  const source = readFileSync(join(import.meta.dirname, `${area}.test.ts`), "utf8");
  expect(source).toContain(`testsCover(api, COVERAGE.${area});`);
});
