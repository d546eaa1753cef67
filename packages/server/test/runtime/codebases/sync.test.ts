import { linkSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { aWhile } from "../../../../../test/support/eventually.ts";
import type { CodebaseChange } from "../../../src/runtime/codebases/api.ts";
import { collecting } from "./collecting.ts";
import { ALICE, arrange, refusal, textOf } from "./fixture.ts";
import { chunks, pieces } from "./opening.ts";

const A = "sb_aaaaaaaaaaaaaaaa";
const B = "sb_bbbbbbbbbbbbbbbb";

describe("a sync", () => {
  test("becomes one version of its own kind", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.batch(ALICE, id, pieces(["a", "1"], ["gone", "2"], ["d/x", "3"]));
    const result = await codebases.sync(
      id,
      A,
      collecting(
        { path: "a", text: "one", mode: 0o4755 },
        { path: "new/deep", text: "n" },
        { path: "gone" },
        { path: "l", target: "/etc/passwd" },
        { path: "bare", directory: true, mode: 0o700 },
      ),
    );
    expect(result).toEqual({ version: 2, conflicts: [], skipped: [], superseded: [] });
    expect(tree()).toEqual({
      a: "755 one",
      bare: "700/",
      d: "755/",
      "d/x": "644 3",
      l: "-> /etc/passwd",
      new: "755/",
      "new/deep": "644 n",
    });
    expect((await codebases.getVersion(ALICE, id, 2)).version).toMatchObject({
      origin: "sync",
      sandboxId: A,
      filesChanged: 4,
    });
  });

  test("of nothing, or of what is there already, makes no version", async () => {
    const { codebases, id, root } = await arrange();
    await codebases.upload(ALICE, id, "a", chunks("1"));
    expect(await codebases.sync(id, A, async () => [])).toBeUndefined();
    expect(await codebases.sync(id, A, collecting({ path: "a", text: "1" }, { path: "never" }))).toBeUndefined();
    expect((await codebases.get(ALICE, id)).version).toBe(1);
    expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
  });

  test("SYNC-18: overwrites newer work of others, and says whose", async () => {
    let now = 1000;
    const { codebases, id } = await arrange({ clock: { now: () => now } });
    await codebases.batch(ALICE, id, pieces(["f", "0"], ["g", "0"], ["h", "0"]));
    now = 2000;
    await codebases.sync(id, B, collecting({ path: "f", text: "by B", madeAtMs: 1900 }));
    now = 3000;
    await codebases.upload(ALICE, id, "g", chunks("by upload"));
    now = 4000;
    const result = await codebases.sync(
      id,
      A,
      collecting(
        { path: "f", text: "by A", madeAtMs: 1500 },
        { path: "g", madeAtMs: 2500 },
        { path: "h", text: "fine", madeAtMs: 1500 },
      ),
    );
    const conflicts = [
      { path: "f", replacedVersion: 2, replacedSandboxId: B },
      { path: "g", replacedVersion: 3, replacedSandboxId: "" },
    ];
    expect(result).toEqual({ version: 4, conflicts, skipped: [], superseded: [] });
    expect((await codebases.getVersion(ALICE, id, 4)).version.conflicts).toEqual(conflicts);
    expect(await textOf(codebases, id, "f")).toBe("by A");
    expect(await textOf(codebases, id, "f", 2)).toBe("by B");
    now = 5000;
    // What the sandbox itself wrote last is no conflict.
    const again = await codebases.sync(id, A, collecting({ path: "f", text: "again", madeAtMs: 100 }));
    expect(again).toEqual({ version: 5, conflicts: [], skipped: [], superseded: [] });
  });

  test("SYNC-18: writes what others deleted and deletes what others changed, and says so", async () => {
    let now = 1000;
    const { codebases, id, tree } = await arrange({ clock: { now: () => now } });
    await codebases.batch(
      ALICE,
      id,
      pieces(["by-upload", "0"], ["by-sync", "0"], ["moved", "0"], ["changed", "0"], ["both", "0"], ["d/inside", "0"]),
    );
    now = 2000;
    await codebases.batch(ALICE, id, pieces({ entry: { kind: "absent", path: "by-upload" } }, ["changed", "1"]));
    now = 3000;
    await codebases.sync(id, B, collecting({ path: "by-sync", madeAtMs: 2900 }, { path: "both", madeAtMs: 2900 }));
    now = 4000;
    await codebases.renameFile(ALICE, id, "moved", "away");
    now = 5000;
    await codebases.deleteFile(ALICE, id, "d", { recursive: true });
    now = 6000;
    const result = await codebases.sync(
      id,
      A,
      collecting(
        { path: "by-upload", text: "A", madeAtMs: 1500 },
        { path: "by-sync", text: "A", madeAtMs: 1500 },
        { path: "moved", text: "A", madeAtMs: 1500 },
        { path: "d/inside", text: "A", madeAtMs: 1500 },
        { path: "changed", madeAtMs: 1500 },
        { path: "both", madeAtMs: 1500 },
      ),
    );
    const conflicts = [
      { path: "by-sync", replacedVersion: 3, replacedSandboxId: B },
      { path: "by-upload", replacedVersion: 2, replacedSandboxId: "" },
      { path: "changed", replacedVersion: 2, replacedSandboxId: "" },
      { path: "d/inside", replacedVersion: 5, replacedSandboxId: "" },
      { path: "moved", replacedVersion: 4, replacedSandboxId: "" },
    ];
    expect(result).toEqual({ version: 6, conflicts, skipped: [], superseded: [] });
    expect((await codebases.getVersion(ALICE, id, 6)).version.conflicts).toEqual(conflicts);
    expect(tree()).toEqual({
      away: "644 0",
      "by-sync": "644 A",
      "by-upload": "644 A",
      d: "755/",
      "d/inside": "644 A",
      moved: "644 A",
    });
  });

  test("of what it has of a file that others deleted, and nothing of its own, brings nothing back", async () => {
    let now = 1000;
    const { codebases, id, tree } = await arrange({ clock: { now: () => now } });
    await codebases.batch(ALICE, id, pieces(["copied", "0"], ["stays", "0"]));
    now = 2000;
    await codebases.deleteFile(ALICE, id, "copied");
    now = 3000;
    const result = await codebases.sync(id, A, collecting({ path: "copied", text: "0", madeAtMs: 1500 }));
    expect(result).toEqual({ version: 0, conflicts: [], skipped: [], superseded: ["copied"] });
    expect(tree()).toEqual({ stays: "644 0" });
  });

  test("SYNC-03, SYNC-09: a directory goes, or becomes something else, only when nothing is left in it", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.batch(
      ALICE,
      id,
      pieces(["d/mine", "1"], ["d/hidden", "2"], ["e/mine", "3"], ["f/mine", "4"], ["g/hidden", "5"]),
    );
    const result = await codebases.sync(
      id,
      A,
      collecting(
        { path: "d" },
        { path: "d/mine" },
        { path: "e" },
        { path: "e/mine" },
        { path: "f/mine" },
        { path: "f", text: "a file now" },
        { path: "g", text: "would bury what is hidden" },
        { path: "h", text: "and the rest goes on" },
      ),
    );
    expect(tree()).toEqual({
      d: "755/",
      "d/hidden": "644 2",
      f: "644 a file now",
      g: "755/",
      "g/hidden": "644 5",
      h: "644 and the rest goes on",
    });
    expect(result).toEqual({ version: 2, conflicts: [], skipped: ["d", "g"], superseded: [] });
  });

  test("SYNC-07, SYNC-08: a link is replaced and never written through", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.sync(id, A, collecting({ path: "d", target: "/tmp" }, { path: "f", target: "/tmp/file" }));
    await codebases.sync(
      id,
      A,
      collecting(
        { path: "d", directory: true, mode: 0o755 },
        { path: "d/x", text: "inside" },
        { path: "f", text: "here" },
      ),
    );
    expect(tree()).toEqual({ d: "755/", "d/x": "644 inside", f: "644 here" });
  });

  test("what cannot be stored is left out; what was not collected as announced is refused", async () => {
    const { codebases, id, tree } = await arrange();
    const odd = collecting(
      { path: "../x", text: "1" },
      { path: "a\udc80", text: "2" },
      { path: "l", target: "\udc80" },
      { path: "ok", text: "3" },
    );
    expect(await codebases.sync(id, A, odd)).toMatchObject({ version: 1, skipped: ["../x", "a\udc80", "l"] });
    expect(tree()).toEqual({ ok: "644 3" });
    const staged = (staged: string, prepare: (staging: string) => void) =>
      refusal(
        codebases.sync(id, A, async (staging) => {
          prepare(staging);
          const common = { path: "evil", kind: "file", mode: 0o644, target: "", sha256: "0".repeat(64) } as const;
          return [{ ...common, size: 1, staged, madeAtMs: 0 }];
        }),
      );
    expect(await staged("../../tree/ok", () => {})).toMatch(/^INTERNAL/);
    expect(await staged("missing", () => {})).toMatch(/^INTERNAL/);
    expect(await staged("link", (staging) => symlinkSync("/etc/hostname", join(staging, "link")))).toMatch(/^INTERNAL/);
    expect(await staged("long", (staging) => writeFileSync(join(staging, "long"), "too long"))).toMatch(/^INTERNAL/);
    expect(await staged("hard", (staging) => linkSync(join(staging, "../../tree/ok"), join(staging, "hard")))).toMatch(
      /^INTERNAL/,
    );
    expect(tree()).toEqual({ ok: "644 3" });
  });

  test("fails as its collecting fails, and nobody else changes the codebase meanwhile", async () => {
    const { codebases, id } = await arrange();
    const failing = codebases.sync(id, A, async () => {
      throw new TypeError("the delta is gone");
    });
    await expect(failing).rejects.toThrow(new TypeError("the delta is gone"));
    const order: string[] = [];
    const sync = codebases.sync(id, A, async (staging) => {
      order.push("collecting");
      const entries = await collecting({ path: "a", text: "by A" })(staging);
      await aWhile(100);
      order.push("collected");
      return entries;
    });
    const upload = codebases.upload(ALICE, id, "a", chunks("by upload")).then(() => order.push("uploaded"));
    await Promise.all([sync, upload]);
    expect(order).toEqual(["collecting", "collected", "uploaded"]);
    expect(await textOf(codebases, id, "a")).toBe("by upload");
  });

  test("counts against the owner's limits", async () => {
    const { codebases, id, tree } = await arrange({ limits: { maxBytesPerOwner: 10 } });
    expect(await refusal(codebases.sync(id, A, collecting({ path: "a", text: "more than ten" })))).toMatch(
      /^LIMIT_EXCEEDED/,
    );
    expect(tree()).toEqual({});
  });
});

describe("listeners", () => {
  test("hear of every change, in order, before the call returns", async () => {
    const { codebases, id, logged } = await arrange();
    const heard: CodebaseChange[] = [];
    codebases.onChange(async () => {
      throw new Error("deaf");
    });
    const listening = codebases.onChange(async (change) => {
      await aWhile(20);
      heard.push(change);
    });
    await codebases.batch(ALICE, id, pieces(["d/a", "1"], ["b", "2"]));
    expect(heard).toEqual([
      { codebaseId: id, version: 1, paths: ["b", "d", "d/a"], sandboxId: "", createdAtMs: expect.any(Number) },
    ]);
    await codebases.renameFile(ALICE, id, "b", "c");
    await codebases.sync(id, A, collecting({ path: "c", text: "3" }));
    await Promise.all([codebases.deleteFile(ALICE, id, "c"), codebases.upload(ALICE, id, "e", chunks("5"))]);
    await codebases.upload(ALICE, id, "e", chunks("5"));
    expect(heard.map(({ version, sandboxId }) => `${version} ${sandboxId}`)).toEqual([
      "1 ",
      "2 ",
      `3 ${A}`,
      "4 ",
      "5 ",
    ]);
    expect(heard[1]?.paths).toEqual(["b", "c"]);
    expect(logged.filter(({ level }) => level === "error")).toHaveLength(5);
    listening[Symbol.dispose]();
    await codebases.upload(ALICE, id, "f", chunks("6"));
    expect(heard).toHaveLength(5);
  });
});
