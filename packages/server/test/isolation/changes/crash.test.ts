import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { aWhile } from "../../../../../test/support/eventually.ts";
import { arrange } from "./arrangement.ts";

const SIZE = 24 << 20;
const FILES = 8;

describe("an apply that is killed", () => {
  test("SYNC-11: leaves every file old or new, and the next one finishes the work", async () => {
    const place = arrange({ sub: {} }, { tree: { sub: {} } });
    const names = Array.from({ length: FILES }, (_, index) => `sub/file-${index}`);
    for (const name of names) {
      writeFileSync(join(place.lower, name), Buffer.alloc(SIZE, "o"));
      writeFileSync(join(place.delta, "tree", name), Buffer.alloc(SIZE, "n"));
    }
    mkdirSync(join(place.delta, "tree/dir"));
    writeFileSync(join(place.lower, "dir"), "a file that becomes a directory");
    writeFileSync(join(place.delta, "tree/dir/x"), "x");

    const progress: number[] = [];
    for (let kill = 0; kill < 6; kill++) {
      const child = spawn(process.execPath, [join(import.meta.dirname, "apply-child.ts"), place.delta, place.lower], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const exited = once(child, "exit");
      await Promise.race([once(child.stdout, "data"), exited]);
      await aWhile(5 + kill * 13);
      child.kill("SIGKILL");
      await exited;
      progress.push(names.filter((name) => isNew(join(place.lower, name))).length);
    }
    expect(progress).toEqual([...progress].sort((a, b) => a - b));

    await place.apply();
    expect(names.every((name) => isNew(join(place.lower, name)))).toBe(true);
    expect(readdirSync(place.lower).sort()).toEqual(["dir", "sub"]);
    expect(readdirSync(join(place.lower, "sub")).sort()).toEqual(names.map((name) => name.slice(4)).sort());
    expect(readdirSync(join(place.lower, "dir"))).toEqual(["x"]);
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
  });
});

/** Fails for a file that is neither all old nor all new. */
function isNew(path: string): boolean {
  const content = readFileSync(path);
  const first = content.toString("latin1", 0, 1);
  expect(["o", "n"]).toContain(first);
  expect(content.equals(Buffer.alloc(SIZE, first))).toBe(true);
  return first === "n";
}
