import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Rule } from "@agentfense/permission";
import { listChanges, MountHost, type WorkspaceMount } from "@agentfense/server/isolation";
import { expect, test } from "vitest";
import { aTickOfFileTimes } from "../../../../../test/support/eventually.ts";
import type { CollectedChange } from "../../../src/isolation/changes/collect.ts";
import { type WriteSpec, type WrittenChanges, writeChanges } from "../../../src/isolation/changes/collect.ts";
import { LockedCodebase } from "../../../src/isolation/changes/places.ts";
import { settleChanges } from "../../../src/isolation/changes/settle.ts";
import { type Arrangement, arrange, shape, WRITE_ALL } from "./arrangement.ts";

const GUARDED: readonly Rule[] = [
  { pattern: "**/*", permission: "read" },
  { pattern: "/src/**", permission: "write" },
];

function write({ delta, lower }: Arrangement, more: Partial<WriteSpec> = {}): Promise<WrittenChanges> {
  return writeChanges({ delta, lower, rules: WRITE_ALL, ...more });
}

/** "added /a file", with "!" and the reason for what is not written. */
function told({ change, ready, entry, reason }: CollectedChange): string {
  return ready ? `${change.kind} ${change.path} ${entry?.kind}` : `! ${change.path}: ${reason}`;
}

async function changesOf({ delta, lower }: Arrangement): Promise<string[]> {
  return (await Array.fromAsync(listChanges({ delta, lowers: [lower] }))).map(({ kind, path }) => `${kind} ${path}`);
}

/** Works while the workspace is mounted. */
async function mounted(place: Arrangement, work: (mount: WorkspaceMount) => Promise<void>): Promise<void> {
  await using host = await MountHost.start();
  const mountPoint = join(place.root, "mnt");
  await using mount = await host.mount({ mountPoint, lowers: [place.lower], delta: place.delta, rules: WRITE_ALL });
  await work(mount);
}

test("the codebase becomes what a live mount shows, and what is settled leaves the delta", async () => {
  const place = arrange({
    "a.txt": "old",
    keep: "same",
    gone: "x",
    tree: { x: { y: "1" }, z: "2" },
    swap: "file",
    dir: { f: "1" },
  });
  await mounted(place, async (mount) => {
    const at = (path: string): string => mount.mountPoint + path;
    writeFileSync(at("/a.txt"), "new");
    chmodSync(at("/keep"), 0o755);
    rmSync(at("/gone"));
    rmSync(at("/tree"), { recursive: true });
    mkdirSync(at("/tree"));
    writeFileSync(at("/tree/only"), "this");
    rmSync(at("/swap"));
    mkdirSync(at("/swap"));
    writeFileSync(at("/swap/inside"), "directory now");
    rmSync(at("/dir"), { recursive: true });
    writeFileSync(at("/dir"), "file now");
    symlinkSync("a.txt", at("/link"));
    mkdirSync(at("/empty"), { mode: 0o700 });
    const seen = shape(at(""));

    const { changes, settled, overwritten } = await write(place);
    expect(shape(place.lower)).toEqual(seen);
    expect(overwritten).toEqual([]);
    expect(changes.filter(({ ready }) => !ready)).toEqual([]);
    await mount.codebaseChanged(changes.map(({ change }) => change.path));
    expect(await mount.settle(settled)).toEqual([]);
    expect(shape(at(""))).toEqual(seen);
  });
  expect(shape(join(place.delta, "tree"))).toEqual({});
  expect(await changesOf(place)).toEqual([]);
});

test("what changes after it was written stays in the delta", async () => {
  const place = arrange({ a: "old" });
  await mounted(place, async (mount) => {
    const fd = openSync(`${mount.mountPoint}/a`, "w");
    try {
      writeSync(fd, "first");
      const { settled } = await write(place);
      await aTickOfFileTimes();
      writeSync(fd, " second");
      expect(await mount.settle(settled)).toEqual(["/a"]);
    } finally {
      closeSync(fd);
    }
    expect(readFileSync(join(place.lower, "a"), "utf8")).toBe("first");
    expect(readFileSync(`${mount.mountPoint}/a`, "utf8")).toBe("first second");
    expect(await changesOf(place)).toEqual(["modified /a"]);
  });
});

test("only what the rules let the sandbox write is written", async () => {
  const place = arrange({ src: { a: "1" }, notes: "n" });
  await place.inMount((at) => {
    writeFileSync(at("/src/a"), "2");
    writeFileSync(at("/notes"), "changed");
    writeFileSync(at("/new"), "new");
  });
  const { changes } = await write(place, { rules: GUARDED });
  expect(changes.map(told)).toEqual(["! /new: level read", "! /notes: level read", "modified /src/a file"]);
  expect(shape(place.lower)).toMatchObject({ "/src/a": "644 2", "/notes": "644 n" });
  expect(existsSync(join(place.lower, "new"))).toBe(false);
});

test("links in the codebase are replaced, never followed", async () => {
  const place = arrange({ dir: { f: "1" } });
  const outside = join(place.root, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "f"), "theirs");
  await place.inMount((at) => writeFileSync(at("/dir/f"), "2"));
  renameSync(join(place.lower, "dir"), join(place.lower, "moved"));
  symlinkSync(outside, join(place.lower, "dir"));
  await write(place);
  expect(readFileSync(join(outside, "f"), "utf8")).toBe("theirs");
  expect(readFileSync(join(place.lower, "dir/f"), "utf8")).toBe("2");
});

test("a file that the codebase changed meanwhile is overwritten and named; a dry run names it too and touches nothing", async () => {
  const place = arrange({ a: "old", b: "old" });
  await place.inMount((at) => {
    writeFileSync(at("/a"), "sandbox");
    writeFileSync(at("/b"), "sandbox");
  });
  await aTickOfFileTimes();
  appendFileSync(join(place.lower, "a"), " and newer");
  const before = [shape(place.lower), shape(place.delta)];
  const rehearsal = await write(place, { dryRun: true });
  expect([shape(place.lower), shape(place.delta)]).toEqual(before);
  expect(rehearsal.overwritten).toEqual(["/a"]);
  expect((await write(place)).overwritten).toEqual(["/a"]);
  expect(shape(place.lower)).toEqual({ "/a": "644 sandbox", "/b": "644 sandbox" });
});

test("only named paths are written; one without a change is refused", async () => {
  const place = arrange({ a: "old", d: { x: "1", y: "2" } });
  await place.inMount((at) => {
    writeFileSync(at("/a"), "new");
    writeFileSync(at("/d/x"), "new");
    rmSync(at("/d/y"));
  });
  await expect(write(place, { paths: ["/a", "/nothing"] })).rejects.toMatchObject({ code: "NO_CHANGE" });
  expect(shape(place.lower)["/a"]).toBe("644 old");
  const { changes, settled } = await write(place, { paths: ["/d"] });
  expect(changes.map(told)).toEqual(["modified /d/x file", "deleted /d/y absent"]);
  await settleChanges({ delta: place.delta, lowers: [place.lower], entries: settled });
  expect(await changesOf(place)).toEqual(["modified /a"]);
});

test("while another process applies to the codebase nothing is written", async () => {
  const place = arrange({ a: "old" });
  await place.inMount((at) => writeFileSync(at("/a"), "new"));
  using _other = new LockedCodebase(place.lower);
  await expect(write(place)).rejects.toMatchObject({ code: "CODEBASE_IN_USE" });
  expect(shape(place.lower)).toEqual({ "/a": "644 old" });
});
