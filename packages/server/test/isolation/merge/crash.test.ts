import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mergeDeltas } from "@agentfense/server/isolation";
import { expect, onTestFinished, test } from "vitest";
import { aTickOfFileTimes, aWhile } from "../../../../../test/support/eventually.ts";
import { rounds } from "../../../../../test/support/rounds.ts";

const LINES = Array.from({ length: 2000 }, (_, i) => `${i}\n`).join("");
const MERGED = LINES.replace("10\n", "ten\n").replace("1990\n", "nineteen hundred and ninety\n");
const FILES = 200;
const SIZE = 64 << 10;

test("BR-03 a merge that is killed leaves every file old or new, and the next one does the rest", async () => {
  const root = mkdtempSync(join(tmpdir(), "agentfense-merge-crash-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (let kill = 0; kill < rounds(3); kill++) {
    const place = join(root, String(kill));
    const [into, a, b] = ["into", "a", "b"].map((name) => join(place, name)) as [string, string, string];
    for (const path of [into, join(a, "tree"), join(b, "tree")]) mkdirSync(path, { recursive: true });
    // All of the directory before all of the deltas: what is of one tick of the clock counts as changed since.
    writeFileSync(join(into, "text"), LINES);
    writeFileSync(join(into, "gone"), "");
    for (let n = 0; n < FILES; n++) writeFileSync(join(into, `file-${n}`), Buffer.alloc(SIZE, "o"));
    await aTickOfFileTimes();
    for (let n = 0; n < FILES; n++) {
      writeFileSync(join(n % 2 === 0 ? a : b, "tree", `file-${n}`), Buffer.alloc(SIZE, "n"));
    }
    writeFileSync(join(a, "tree/text"), LINES.replace("10\n", "ten\n"));
    writeFileSync(join(b, "tree/text"), LINES.replace("1990\n", "nineteen hundred and ninety\n"));
    writeFileSync(join(b, "tree/.wh.gone"), "");

    const child = spawn(process.execPath, [join(import.meta.dirname, "merge-child.ts"), into, a, b], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    await Promise.race([once(child.stdout, "data"), exited]);
    await aWhile(kill * 40);
    child.kill("SIGKILL");
    await exited;

    for (let n = 0; n < FILES; n++) expectWhole(join(into, `file-${n}`));
    expect([LINES, MERGED]).toContain(readFileSync(join(into, "text"), "utf8"));
    // Nothing is lost: what the directory does not have is still in a delta.
    const rules = [{ pattern: "**/*", permission: "write" as const }];
    const deltas = [a, b].map((delta) => ({ name: delta.slice(-1), delta, lower: into, rules }));
    const report = await mergeDeltas({ deltas, into, intoName: "into", favour: "ours" });
    expect(report.conflicts.filter(({ path, kind }) => path !== "/text" || kind !== "outdated")).toEqual([]);
    expect(report.changes.filter(({ outcome }) => outcome !== "merged")).toEqual([]);
    for (let n = 0; n < FILES; n++) expect(readFileSync(join(into, `file-${n}`), "latin1")[0]).toBe("n");
    expect(readFileSync(join(into, "text"), "utf8")).toBe(MERGED);
    expect(readdirSync(into).length).toBe(FILES + 1);
    expect([readdirSync(join(a, "tree")), readdirSync(join(b, "tree"))]).toEqual([[], []]);
    expect([readdirSync(join(a, "work")), readdirSync(join(b, "work"))]).toEqual([[], []]);
  }
});

function expectWhole(path: string): void {
  const content = readFileSync(path);
  expect(content.equals(Buffer.alloc(SIZE, content.subarray(0, 1)))).toBe(true);
}
