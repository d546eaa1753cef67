import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { MountHost } from "@agentfense/server/isolation";
import { expect, onTestFinished, test } from "vitest";
import { withoutHanging } from "../../support/eventually.ts";
import { livePlace } from "./place.ts";

const text = (fd: number): string => {
  const bytes = Buffer.alloc(1000);
  return bytes.toString("utf8", 0, readSync(fd, bytes, 0, 1000, 0));
};

test("a name that was absent appears, in lookups and listings", async () => {
  await using place = await livePlace({ "/src/a": "a" });
  expect(existsSync(place.at("/src/new"))).toBe(false);
  expect(existsSync(place.at("/deep/er/file"))).toBe(false);
  expect(place.names("/src")).toEqual(["a"]);
  place.replace("/src/new", "uploaded");
  place.replace("/deep/er/file", "deep");
  await place.mount.codebaseChanged(["/src/new", "deep/er/file"]);
  expect(place.read("/src/new")).toBe("uploaded");
  expect(place.read("/deep/er/file")).toBe("deep");
  expect(place.names("/src")).toEqual(["a", "new"]);
  expect(place.names()).toEqual(["deep", "src"]);
});

test("a replaced file shows its new content, size and time at once", async () => {
  await using place = await livePlace({ "/a": "old", "/big": "x".repeat(300_000) });
  expect(place.read("/a")).toBe("old");
  expect(place.read("/big").length).toBe(300_000);
  place.replace("/a", "something longer than before");
  place.replace("/big", "y".repeat(200_000));
  await place.mount.codebaseChanged(["/a", "/big"]);
  expect(statSync(place.at("/a")).size).toBe("something longer than before".length);
  expect(place.read("/a")).toBe("something longer than before");
  expect(place.read("/big")).toBe("y".repeat(200_000));
  expect(statSync(place.at("/a")).mtimeMs).toBe(statSync(place.below("/a")).mtimeMs);
});

test("whoever has a file open goes on reading what he opened", async () => {
  await using place = await livePlace({ "/small": "old small", "/big": "x".repeat(300_000), "/gone": "old gone" });
  const small = openSync(place.at("/small"), "r");
  const big = openSync(place.at("/big"), "r");
  const gone = openSync(place.at("/gone"), "r");
  try {
    expect(text(gone)).toBe("old gone");
    readSync(big, Buffer.alloc(4096), 0, 4096, 0);
    place.replace("/small", "new small, and longer");
    place.replace("/big", "y".repeat(300_000));
    unlinkSync(place.below("/gone"));
    await place.mount.codebaseChanged(["/small", "/big", "/gone"]);
    expect(text(small)).toBe("old small");
    expect(fstatSync(small).size).toBe("old small".length);
    const tail = Buffer.alloc(4096);
    readSync(big, tail, 0, 4096, 290_000);
    expect(tail.toString()).toBe("x".repeat(4096));
    expect(text(gone)).toBe("old gone");
    expect(place.read("/small")).toBe("new small, and longer");
    expect(place.read("/big")[299_999]).toBe("y");
    expect(existsSync(place.at("/gone"))).toBe(false);
  } finally {
    for (const fd of [small, big, gone]) closeSync(fd);
  }
});

test("what was deleted disappears, directories with all below", async () => {
  await using place = await livePlace({ "/d/e/f": "1", "/d/g": "2", "/stays": "3" });
  expect(place.read("/d/e/f")).toBe("1");
  expect(place.names("/d")).toEqual(["e", "g"]);
  rmSync(place.below("/d"), { recursive: true });
  await place.mount.codebaseChanged(["/d"]);
  expect(existsSync(place.at("/d/e/f"))).toBe(false);
  expect(existsSync(place.at("/d"))).toBe(false);
  expect(place.names()).toEqual(["stays"]);
  place.replace("/d/e/f", "again");
  await place.mount.codebaseChanged(["/d/e/f"]);
  expect(place.read("/d/e/f")).toBe("again");
  expect(place.names("/d")).toEqual(["e"]);
});

test("types change: file, directory and link", async () => {
  await using place = await livePlace({ "/a": "file", "/b/c": "below", "/target": "aimed at", "/other": "other" });
  symlinkSync("target", place.below("/l"));
  await place.mount.codebaseChanged(["/l"]);
  expect(place.read("/l")).toBe("aimed at");
  expect(place.read("/b/c")).toBe("below");
  expect(place.read("/a")).toBe("file");
  unlinkSync(place.below("/a"));
  place.replace("/a/inside", "now a directory");
  rmSync(place.below("/b"), { recursive: true });
  place.replace("/b", "now a file");
  unlinkSync(place.below("/l"));
  symlinkSync("other", place.below("/l"));
  await place.mount.codebaseChanged(["/a", "/a/inside", "/b/c", "/b", "/l"]);
  expect(place.read("/a/inside")).toBe("now a directory");
  expect(place.read("/b")).toBe("now a file");
  expect(readlinkSync(place.at("/l"))).toBe("other");
  expect(place.read("/l")).toBe("other");
  expect(
    readdirSync(place.at("/"), { withFileTypes: true })
      .map((entry) => `${entry.name}${entry.isDirectory() ? "/" : ""}`)
      .sort(),
  ).toEqual(["a/", "b", "l", "other", "target"]);
});

test("a directory that was replaced by another one is the other one", async () => {
  await using place = await livePlace({ "/d/same": "old", "/d/only-old": "1", "/d/sub/x": "deep" });
  expect(place.read("/d/same")).toBe("old");
  expect(place.read("/d/sub/x")).toBe("deep");
  expect(place.names("/d")).toEqual(["only-old", "same", "sub"]);
  expect(existsSync(place.at("/d/only-new"))).toBe(false);
  renameSync(place.below("/d"), place.below("/elsewhere"));
  place.replace("/d/same", "new");
  place.replace("/d/only-new", "2");
  await place.mount.codebaseChanged(["/d", "/elsewhere", "/d/only-new", "/d/same"]);
  expect(place.read("/d/same")).toBe("new");
  expect(place.read("/d/only-new")).toBe("2");
  expect(existsSync(place.at("/d/only-old"))).toBe(false);
  expect(existsSync(place.at("/d/sub/x"))).toBe(false);
  expect(place.names("/d")).toEqual(["only-new", "same"]);
  expect(place.read("/elsewhere/sub/x")).toBe("deep");
});

test("what the sandbox changed shadows what others change", async () => {
  await using place = await livePlace({ "/mine": "1", "/deleted": "2", "/d/theirs": "3" });
  writeFileSync(place.at("/mine"), "sandbox");
  unlinkSync(place.at("/deleted"));
  mkdirSync(place.at("/made"));
  writeFileSync(place.at("/made/own"), "own");
  place.replace("/mine", "upload");
  place.replace("/deleted", "upload");
  place.replace("/made/theirs", "upload");
  await place.mount.codebaseChanged(["/mine", "/deleted", "/made", "/made/theirs"]);
  expect(place.read("/mine")).toBe("sandbox");
  expect(existsSync(place.at("/deleted"))).toBe(false);
  expect(place.names("/made")).toEqual(["own", "theirs"]);
  expect(place.read("/made/theirs")).toBe("upload");
});

test("a working directory that stays keeps its path", async () => {
  await using place = await livePlace({});
  mkdirSync(place.at("/made"));
  const before = process.cwd();
  process.chdir(place.at("/made"));
  try {
    place.replace("/made/theirs", "upload");
    await place.mount.codebaseChanged(["/made", "/made/theirs"]);
    expect(readFileSync("theirs", "utf8")).toBe("upload");
    statSync(place.at("/made"));
    expect(process.cwd()).toBe(place.at("/made"));
  } finally {
    process.chdir(before);
  }
});

test("modes of files and directories follow", async () => {
  await using place = await livePlace({ "/f": "1", "/d/x": "2" });
  expect(statSync(place.at("/d")).mode & 0o777).toBe(statSync(place.below("/d")).mode & 0o777);
  chmodSync(place.below("/d"), 0o711);
  place.replace("/f", "1");
  chmodSync(place.below("/f"), 0o755);
  await place.mount.codebaseChanged(["/f", "/d"]);
  expect(statSync(place.at("/d")).mode & 0o777).toBe(0o711);
  expect(statSync(place.at("/f")).mode & 0o777).toBe(0o755);
});

test("changes of what is hidden leave no trace", async () => {
  const rules = [
    { pattern: "**/*", permission: "write" as const },
    { pattern: "/secrets/**", permission: "none" as const, priority: 10 },
    { pattern: "/secrets/public.key", permission: "read" as const, priority: 20 },
    { pattern: "**/*.key", permission: "none" as const, priority: 5 },
  ];
  await using place = await livePlace({ "/src/a": "1" }, { rules });
  const look = (): unknown => [
    place.names(),
    place.names("/src"),
    lstatSync(place.at("/src")).mtimeMs,
    lstatSync(place.at("/")).mtimeMs,
  ];
  expect(existsSync(place.at("/secrets"))).toBe(false);
  const before = look();
  place.replace("/src/b.key", "hidden");
  place.replace("/secrets/token", "hidden");
  await place.mount.codebaseChanged(["/src/b.key", "/secrets/token", "/secrets"]);
  expect(look()).toEqual(before);
  expect(existsSync(place.at("/src/b.key"))).toBe(false);
  expect(existsSync(place.at("/secrets"))).toBe(false);
  place.replace("/secrets/public.key", "shown");
  await place.mount.codebaseChanged(["/secrets/public.key"]);
  expect(place.read("/secrets/public.key")).toBe("shown");
  expect(place.names()).toEqual(["secrets", "src"]);
  expect(place.names("/secrets")).toEqual(["public.key"]);
  unlinkSync(place.below("/secrets/public.key"));
  await place.mount.codebaseChanged(["/secrets/public.key"]);
  expect(existsSync(place.at("/secrets"))).toBe(false);
  expect(place.names()).toEqual(["src"]);
});

test("one change in a directory of three thousand leaves what the kernel knows of all the others", async () => {
  const host = await MountHost.start();
  onTestFinished(() => host.close());
  const tree = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`/many/f${index}`, String(index)]));
  await using place = await livePlace(tree, { host });
  expect(place.names("/many").length).toBe(3000);
  const lookUpOthers = (): void => {
    for (let index = 5; index < 3000; index += 10) statSync(place.at(`/many/f${index}`));
  };
  lookUpOthers();
  statSync(place.at("/many/f500"));
  place.replace("/many/f500", "changed");
  place.replace("/many/new", "added");
  await place.mount.codebaseChanged(["/many/f500", "/many/new"]);
  expect(place.read("/many/f500")).toBe("changed");
  const lookups = (): number => host.counts().fuseOperations.Lookup ?? 0;
  const before = lookups();
  lookUpOthers();
  expect(lookups()).toBe(before);
  expect(place.names("/many").length).toBe(3001);
});

test("two thousand changes at once", async () => {
  await using place = await livePlace({ "/d/f0": "0" });
  for (let index = 0; index < 2000; index++) existsSync(place.at(`/d/f${index}`));
  for (let index = 0; index < 2000; index++) place.replace(`/d/f${index}`, `new ${index}`);
  await withoutHanging(() => place.mount.codebaseChanged(Array.from({ length: 2000 }, (_, index) => `/d/f${index}`)));
  for (const index of [0, 1, 1000, 1999]) expect(place.read(`/d/f${index}`)).toBe(`new ${index}`);
  expect(place.names("/d").length).toBe(2000);
});

test("a directory that was removed and is somebody's working directory is gone, not broken", async () => {
  await using place = await livePlace({ "/d/x": "1" });
  const before = process.cwd();
  process.chdir(place.at("/d"));
  try {
    expect(existsSync("x")).toBe(true);
    unlinkSync(place.below("/d/x"));
    rmdirSync(place.below("/d"));
    await place.mount.codebaseChanged(["/d/x", "/d"]);
    expect(existsSync("x")).toBe(false);
    expect(() => writeFileSync("y", "")).toThrow("ENOENT");
  } finally {
    process.chdir(before);
  }
  place.replace("/d/x", "again");
  await place.mount.codebaseChanged(["/d/x"]);
  expect(place.read("/d/x")).toBe("again");
});
