import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { discardChanges } from "@agentfense/server/isolation";
import { describe, expect, test } from "vitest";
import { arrange, shape } from "./arrangement.ts";

describe("discardChanges", () => {
  test("by path: the original shows again, the rest stays", async () => {
    const place = arrange({ a: "1", b: "1", src: { c: "1", d: "1" } });
    await place.inMount((at) => {
      writeFileSync(at("/a"), "2");
      rmSync(at("/b"));
      writeFileSync(at("/src/c"), "2");
      rmSync(at("/src/d"));
      writeFileSync(at("/new"), "2");
    });
    expect(await discardChanges({ delta: place.delta, paths: ["a", "/b", "src"] })).toEqual({
      discarded: ["/a", "/b", "/src"],
      failed: [],
    });
    await place.inMount((at) =>
      expect(shape(at(""))).toEqual({
        "/a": "644 1",
        "/b": "644 1",
        "/src/": "755",
        "/src/c": "644 1",
        "/src/d": "644 1",
        "/new": "644 2",
      }),
    );
  });

  test("all: the whole codebase shows again", async () => {
    const codebase = { a: "1", b: "1", src: { c: "1" }, [`${"n".repeat(255)}`]: "1" };
    const place = arrange(codebase);
    const before = shape(place.lower);
    await place.inMount((at) => {
      rmSync(at("/src"), { recursive: true });
      mkdirSync(at(`/src${"/d".repeat(200)}`), { recursive: true });
      writeFileSync(at("/a"), "2");
      rmSync(at("/b"));
      rmSync(at(`/${"n".repeat(255)}`));
    });
    expect(await discardChanges({ delta: place.delta })).toEqual({ discarded: ["/"], failed: [] });
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
    expect(readdirSync(join(place.delta, "work"))).toEqual([]);
    await place.inMount((at) => expect(shape(at(""))).toEqual(before));
  });

  test("a path without a change is an error, and nothing is done", async () => {
    const place = arrange({ a: "1" });
    await place.inMount((at) => writeFileSync(at("/a"), "2"));
    await expect(discardChanges({ delta: place.delta, paths: ["a", "nowhere/at/all"] })).rejects.toMatchObject({
      code: "NO_CHANGE",
      message: "the delta changes nothing at nowhere/at/all",
    });
    await expect(discardChanges({ delta: place.delta, paths: ["../a"] })).rejects.toMatchObject({
      code: "INVALID_PATH",
    });
    expect(readFileSync(join(place.delta, "tree/a"), "utf8")).toBe("2");
  });

  test("part of a directory that was deleted, or is a file now, goes only with it", async () => {
    const place = arrange({ gone: { a: "1" }, now: { b: "1" } });
    await place.inMount((at) => {
      rmSync(at("/gone"), { recursive: true });
      rmSync(at("/now"), { recursive: true });
      writeFileSync(at("/now"), "a file");
    });
    for (const [path, whole] of [
      ["gone/a", "/gone"],
      ["now/b", "/now"],
    ] as const) {
      await expect(discardChanges({ delta: place.delta, paths: [path] })).rejects.toMatchObject({
        code: "PART_OF_REPLACED_DIRECTORY",
        message: `${path} is part of ${whole}, which was deleted or replaced; discard ${whole} as a whole`,
      });
    }
  });

  test("part of a directory that was deleted and made anew goes only with it", async () => {
    const place = arrange({ src: { a: "1", b: "1" } });
    await place.inMount((at) => {
      rmSync(at("/src"), { recursive: true });
      mkdirSync(at("/src"));
      writeFileSync(at("/src/a"), "2");
    });
    await expect(discardChanges({ delta: place.delta, paths: ["src/a"] })).rejects.toMatchObject({
      code: "PART_OF_REPLACED_DIRECTORY",
      message: "src/a is part of /src, which was deleted or replaced; discard /src as a whole",
    });
    await discardChanges({ delta: place.delta, paths: ["src"] });
    await place.inMount((at) => expect(readdirSync(at("/src"))).toEqual(["a", "b"]));
  });

  test("a whiteout beside the entry goes too", async () => {
    const place = arrange({ a: "1" }, { tree: { a: "2", ".wh.a": "" } });
    await discardChanges({ delta: place.delta, paths: ["a"] });
    await place.inMount((at) => expect(shape(at(""))).toEqual({ "/a": "644 1" }));
  });

  test("no symlink in the delta is followed", async () => {
    const place = arrange({}, { tree: {} });
    const outside = join(place.root, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "file"), "safe");
    await place.inMount(() => {});
    symlinkSync(outside, join(place.delta, "tree/link"));
    await expect(discardChanges({ delta: place.delta, paths: ["link/file"] })).rejects.toMatchObject({
      code: "PART_OF_REPLACED_DIRECTORY",
    });
    await discardChanges({ delta: place.delta, paths: ["link"] });
    expect(existsSync(join(place.delta, "tree/link"))).toBe(false);
    expect(readFileSync(join(outside, "file"), "utf8")).toBe("safe");
  });

  test("a delta in use is refused", async () => {
    const place = arrange({ a: "1" });
    await place.inMount(async (at) => {
      chmodSync(at("/a"), 0o600);
      await expect(discardChanges({ delta: place.delta })).rejects.toMatchObject({ code: "DELTA_IN_USE" });
    });
  });
});
