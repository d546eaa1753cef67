import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { scratch } from "./run-cli.ts";

test("what `npm start` shows turns out as announced and leaves nothing behind", async () => {
  const temporary = await scratch();
  const demo = join(import.meta.dirname, "../../../examples/demo.ts");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [demo], {
    env: { ...process.env, TMPDIR: temporary },
  });
  expect(stderr).toBe("");
  expect(stdout).toContain("cat: .env: No such file or directory");
  expect(stdout).toContain("src/tracker.js: Permission denied");
  expect(stdout).toMatch(/^added +\/output\/report.txt \(23 bytes\)$/m);
  expect(await readdir(temporary)).toEqual([]);
});
