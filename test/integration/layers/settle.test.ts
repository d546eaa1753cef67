import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type Collection, collectChanges, settleChanges } from "@agentfense/server/isolation";
import { expect, test } from "vitest";
import { aTickOfFileTimes } from "../../support/eventually.ts";
import { type LivePlace, livePlace, WRITE_ALL } from "./place.ts";

/** What the service does after a command: collect, carry out, tell, settle. */
async function sync(place: LivePlace): Promise<{ collection: Collection; stayed: readonly string[] }> {
  const { delta, lower } = place;
  rmSync(place.staging, { recursive: true });
  mkdirSync(place.staging);
  const collection = await collectChanges({ delta, lower, rules: WRITE_ALL, staging: place.staging });
  carryOut(place, collection);
  await place.mount.codebaseChanged(collection.changes.map(({ change }) => change.path));
  return { collection, stayed: await place.mount.settle(collection.settled) };
}

function carryOut(place: LivePlace, { changes }: Collection): void {
  for (const { change, entry } of changes) {
    if (entry === undefined) continue;
    const path = place.below(change.path);
    if (entry.kind === "absent") rmSync(path, { recursive: true, force: true });
    else if (entry.kind === "directory") {
      if (existsSync(path) && !statSync(path).isDirectory()) unlinkSync(path);
      mkdirSync(path, { recursive: true });
      chmodSync(path, entry.mode);
    } else if (entry.kind === "symlink") {
      rmSync(path, { recursive: true, force: true });
      symlinkSync(entry.target, path);
    } else {
      mkdirSync(dirname(path), { recursive: true });
      chmodSync(join(place.staging, entry.staged), entry.mode);
      renameSync(join(place.staging, entry.staged), path);
    }
  }
}

function deltaNames(place: LivePlace): string[] {
  return readdirSync(join(place.delta, "tree"), { recursive: true }).map(String).sort();
}

test("what was synced leaves the delta, and looks the same", async () => {
  await using place = await livePlace({ "/kept": "1", "/edited": "before", "/removed": "2", "/dir/inner": "3" });
  writeFileSync(place.at("/edited"), "after");
  unlinkSync(place.at("/removed"));
  mkdirSync(place.at("/made/deep"), { recursive: true });
  writeFileSync(place.at("/made/deep/file"), "new");
  symlinkSync("deep/file", place.at("/made/link"));
  writeFileSync(place.at("/dir/other"), "beside");
  const numbers = (): number[] =>
    ["/edited", "/made", "/made/deep/file", "/dir"].map((path) => statSync(place.at(path)).ino);
  const [before, times] = [numbers(), statSync(place.at("/edited")).mtimeMs];
  const { stayed } = await sync(place);
  expect(stayed).toEqual([]);
  expect(deltaNames(place)).toEqual([]);
  expect(place.read("/edited")).toBe("after");
  expect(place.read("/made/link")).toBe("new");
  expect(existsSync(place.at("/removed"))).toBe(false);
  expect(place.names("/dir")).toEqual(["inner", "other"]);
  expect(numbers()).toEqual(before);
  expect(statSync(place.at("/edited")).mtimeMs).toBe(times);
  expect(readdirSync(place.at("/"), { withFileTypes: true }).length).toBe(4);
  // The next change begins from the codebase.
  writeFileSync(place.at("/made/deep/file"), "newer");
  expect(readFileSync(place.below("/made/deep/file"), "utf8")).toBe("new");
  expect(place.read("/made/deep/file")).toBe("newer");
});

test("a reader that has the file open goes on reading", async () => {
  await using place = await livePlace({ "/f": "before" });
  writeFileSync(place.at("/f"), "x".repeat(200_000));
  const fd = openSync(place.at("/f"), "r");
  try {
    const { stayed } = await sync(place);
    expect(stayed).toEqual([]);
    const bytes = Buffer.alloc(200_001);
    expect(readSync(fd, bytes, 0, 200_001, 0)).toBe(200_000);
    expect(fstatSync(fd).size).toBe(200_000);
    place.replace("/f", "others were quicker");
    await place.mount.codebaseChanged(["/f"]);
    expect(readSync(fd, bytes, 0, 100, 100_000)).toBe(100);
    expect(bytes.toString("utf8", 0, 100)).toBe("x".repeat(100));
    expect(place.read("/f")).toBe("others were quicker");
  } finally {
    closeSync(fd);
  }
});

test("what is open for writing stays, and is dirty the next time", async () => {
  await using place = await livePlace({ "/f": "before" });
  const fd = openSync(place.at("/f"), "r+");
  try {
    writeSync(fd, "first.");
    const first = await sync(place);
    expect(first.stayed).toEqual(["/f"]);
    expect(readFileSync(place.below("/f"), "utf8")).toBe("first.");
    writeSync(fd, " second.");
  } finally {
    closeSync(fd);
  }
  const second = await sync(place);
  expect(second.collection.changes.map(({ change }) => change.path)).toEqual(["/f"]);
  expect(second.stayed).toEqual([]);
  expect(readFileSync(place.below("/f"), "utf8")).toBe("first. second.");
  expect(deltaNames(place)).toEqual([]);
});

test("what changed after it was collected stays", async () => {
  await using place = await livePlace({ "/a": "1", "/b": "2" });
  writeFileSync(place.at("/a"), "sandbox a");
  unlinkSync(place.at("/b"));
  const collection = await collectChanges({
    delta: place.delta,
    lower: place.lower,
    rules: WRITE_ALL,
    staging: place.staging,
  });
  carryOut(place, collection);
  writeFileSync(place.at("/a"), "sandbox again");
  writeFileSync(place.at("/b"), "made anew");
  await place.mount.codebaseChanged(["/a", "/b"]);
  expect([...(await place.mount.settle(collection.settled))].sort()).toEqual(["/a", "/b"]);
  expect(place.read("/a")).toBe("sandbox again");
  expect(place.read("/b")).toBe("made anew");
});

test("a file with two names stays, its directory too", async () => {
  await using place = await livePlace({});
  mkdirSync(place.at("/d"));
  writeFileSync(place.at("/d/one"), "linked");
  linkSync(place.at("/d/one"), place.at("/d/two"));
  const { stayed } = await sync(place);
  expect([...stayed].sort()).toEqual(["/d/one", "/d/two"]);
  writeFileSync(place.at("/d/one"), "both");
  expect(place.read("/d/two")).toBe("both");
});

test("a directory that was deleted and made anew settles as a whole", async () => {
  await using place = await livePlace({ "/d/old": "1", "/d/both": "2", "/d/sub/x": "3" });
  rmSync(place.at("/d"), { recursive: true });
  mkdirSync(place.at("/d/sub"), { recursive: true });
  writeFileSync(place.at("/d/both"), "new");
  writeFileSync(place.at("/d/sub/y"), "4");
  const { stayed, collection } = await sync(place);
  expect(stayed).toEqual([]);
  expect(collection.changes.filter(({ entry }) => entry?.kind === "absent").map(({ change }) => change.path)).toEqual([
    "/d/old",
    "/d/sub/x",
  ]);
  expect(deltaNames(place)).toEqual([]);
  expect(place.names("/d")).toEqual(["both", "sub"]);
  expect(place.names("/d/sub")).toEqual(["y"]);
  expect(place.read("/d/both")).toBe("new");
});

test("newer work in the codebase shows when the delta lets go", async () => {
  await using place = await livePlace({ "/f": "before", "/w": "to be deleted" });
  writeFileSync(place.at("/f"), "sandbox");
  unlinkSync(place.at("/w"));
  expect(place.read("/f")).toBe("sandbox");
  const collection = await collectChanges({
    delta: place.delta,
    lower: place.lower,
    rules: WRITE_ALL,
    staging: place.staging,
  });
  carryOut(place, collection);
  await aTickOfFileTimes();
  place.replace("/f", "others, later");
  place.replace("/w", "others made it again");
  await place.mount.codebaseChanged(["/f", "/w"]);
  expect(await place.mount.settle(collection.settled)).toEqual([]);
  expect(place.read("/f")).toBe("others, later");
  expect(place.read("/w")).toBe("others made it again");
});

test("a whiteout of what the codebase still has stays", async () => {
  await using place = await livePlace({ "/f": "1" });
  unlinkSync(place.at("/f"));
  expect(await place.mount.settle([{ path: "/f", stamp: undefined }])).toEqual(["/f"]);
  expect(existsSync(place.at("/f"))).toBe(false);
});

test("copies that nobody changed leave with the rest", async () => {
  await using place = await livePlace({ "/a": "1", "/d/b": "2", "/e/c": "3" });
  closeSync(openSync(place.at("/a"), "r+"));
  utimesSync(place.at("/d/b"), 1, 1);
  writeFileSync(place.at("/e/brief"), "");
  unlinkSync(place.at("/e/brief"));
  const { collection, stayed } = await sync(place);
  expect(collection.changes).toEqual([]);
  expect(stayed).toEqual([]);
  expect(deltaNames(place)).toEqual([]);
  expect(place.read("/d/b")).toBe("2");
});

test("the quota gets back what leaves", async () => {
  await using place = await livePlace({}, { quota: { bytes: 100_000, files: 3 } });
  for (let round = 0; round < 3; round++) {
    mkdirSync(place.at(`/d${round}`));
    writeFileSync(place.at(`/d${round}/f`), "x".repeat(90_000));
    expect(() => writeFileSync(place.at("/more"), "x".repeat(20_000))).toThrow("122");
    unlinkSync(place.at("/more"));
    expect((await sync(place)).stayed).toEqual([]);
  }
  expect(place.names()).toEqual(["d0", "d1", "d2"]);
});

test("a delta that nobody has mounted settles on disk", async () => {
  await using place = await livePlace({ "/a": "1", "/gone": "2", "/d/x": "3" });
  writeFileSync(place.at("/a"), "new");
  unlinkSync(place.at("/gone"));
  rmSync(place.at("/d"), { recursive: true });
  mkdirSync(place.at("/d/e"), { recursive: true });
  writeFileSync(place.at("/d/e/f"), "4");
  await place.mount.unmount();
  const { delta, lower } = place;
  const collection = await collectChanges({ delta, lower, rules: WRITE_ALL, staging: place.staging });
  carryOut(place, collection);
  copyFileSync(place.below("/a"), join(place.staging, "keep"));
  expect(await settleChanges({ delta, lowers: [lower], entries: collection.settled })).toEqual([]);
  expect(deltaNames(place)).toEqual([]);
});

test("changes are thrown away under the sandbox's feet, but not what it is writing", async () => {
  await using place = await livePlace({ "/a": "1", "/b": "2", "/d/x": "3", "/d/y": "4", "/e/z": "5" });
  const look = (): Record<string, string[]> => ({
    "/": place.names(),
    "/d": place.names("/d"),
    "/e": place.names("/e"),
  });
  const before = look();
  writeFileSync(place.at("/a"), "changed");
  unlinkSync(place.at("/b"));
  writeFileSync(place.at("/d/new"), "added");
  unlinkSync(place.at("/d/y"));
  rmSync(place.at("/e"), { recursive: true });
  mkdirSync(place.at("/e"));
  writeFileSync(place.at("/e/own"), "6");
  const changed = look();
  expect(changed["/e"]).toEqual(["own"]);
  expect(existsSync(place.at("/e/z"))).toBe(false);
  expect(await place.mount.discard(["/b"])).toEqual({ discarded: ["/b"], failed: [] });
  expect(place.read("/b")).toBe("2");
  const fd = openSync(place.at("/d/x"), "r+");
  try {
    writeSync(fd, "!");
    const report = await place.mount.discard(undefined);
    expect(report.failed).toEqual([{ path: "/d/x", reason: "open for writing" }]);
    expect(look()).toEqual(before);
    expect(place.read("/a")).toBe("1");
    expect(place.read("/d/y")).toBe("4");
    expect(place.read("/e/z")).toBe("5");
    expect(place.read("/d/x")).toBe("!");
  } finally {
    closeSync(fd);
  }
  expect(await place.mount.discard(["/d/x"])).toEqual({ discarded: ["/d/x"], failed: [] });
  expect(place.read("/d/x")).toBe("3");
  await expect(place.mount.discard(["/never"])).rejects.toThrow("the delta changes nothing");
});
