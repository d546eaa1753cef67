import { lstatSync, readdirSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { openWorkspace, type TestWorkspace } from "../../support/workspace.ts";
import { type Caller, outcome, startCaller } from "./caller.ts";
import { append, EVERYTHING_WRITABLE, read, write } from "./mounted.ts";

const MEBIBYTE = 1024 * 1024;
const PIECE = "x".repeat(64 * 1024);

/** How much room a workspace says it has, and what happens when it is used up. */
describe("room", () => {
  test("statfs without a quota does not move with the host's disk", async () => {
    await using workspace = await openWorkspace({ lower: { file: "file" }, rules: EVERYTHING_WRITABLE });
    await using fs = await startCaller();
    const before = await fs.statfs(workspace.mountPoint);
    writeFileSync(`${workspace.root}/elsewhere-on-the-host`, new Uint8Array(20 * MEBIBYTE));
    expect(await fs.statfs(workspace.mountPoint)).toEqual(before);
  });

  test("statfs with a quota shows the quota and what is left of it", async () => {
    await using workspace = await openWorkspace({
      lower: { file: "file" },
      quota: { bytes: 10 * MEBIBYTE, files: 100 },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    const before = await fs.statfs(workspace.mountPoint);
    expect(before.blocks * before.blockSize).toBe(10 * MEBIBYTE);
    expect(before.files).toBe(100);
    await fill(fs, `${workspace.mountPoint}/big`, 4 * MEBIBYTE);
    await write(fs, `${workspace.mountPoint}/another`, "x");
    const after = await fs.statfs(workspace.mountPoint);
    expect(after.blocks).toBe(before.blocks);
    expect((before.available - after.available) * before.blockSize).toBeGreaterThanOrEqual(4 * MEBIBYTE);
    expect((before.available - after.available) * before.blockSize).toBeLessThan(5 * MEBIBYTE);
    expect(before.freeFiles - after.freeFiles).toBe(2);
  });

  for (const passthrough of [true, false]) {
    test(`writing beyond the quota is EDQUOT and told, and what is freed can be used again (passthrough ${passthrough})`, async () => {
      await using workspace = await openWorkspace({
        lower: {},
        quota: { bytes: 2 * MEBIBYTE },
        passthrough,
        rules: EVERYTHING_WRITABLE,
      });
      await using fs = await startCaller();
      const path = `${workspace.mountPoint}/big`;
      expect(await outcome(fill(fs, path, 4 * MEBIBYTE))).toBe("EDQUOT");
      const { size } = await fs.lstat(path);
      expect(size).toBeLessThanOrEqual(2 * MEBIBYTE);
      expect(size).toBeGreaterThan(MEBIBYTE);
      await eventually(() => expect(workspace.events().map(({ kind }) => kind)).toContain("quota_exceeded"));
      await fs.unlink(path);
      expect(await outcome(fill(fs, `${workspace.mountPoint}/again`, MEBIBYTE))).toBe("ok");
    });
  }

  test("copying up a file larger than the quota is EDQUOT and leaves it readable and unchanged", async () => {
    await using workspace = await openWorkspace({
      lower: { large: "y".repeat(2 * MEBIBYTE), small: "small" },
      quota: { bytes: MEBIBYTE },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    const path = `${workspace.mountPoint}/large`;
    expect(await outcome(append(fs, path, "!"))).toBe("EDQUOT");
    expect(await fs.lstat(path)).toMatchObject({ size: 2 * MEBIBYTE });
    expect((await read(fs, path)).slice(0, 3)).toBe("yyy");
    await append(fs, `${workspace.mountPoint}/small`, "!");
    expect(await fs.listdir(workspace.mountPoint)).toEqual(["large", "small"]);
  });

  test("more files than the quota allows is EDQUOT for every kind of entry", async () => {
    await using workspace = await openWorkspace({ lower: {}, quota: { files: 10 }, rules: EVERYTHING_WRITABLE });
    await using fs = await startCaller();
    await fs.chdir(workspace.mountPoint);
    for (let index = 0; index < 10; index++) await write(fs, `file${index}`, "");
    expect(await outcome(fs.open("one-more", "O_WRONLY|O_CREAT"))).toBe("EDQUOT");
    expect(await outcome(fs.mkdir("one-more"))).toBe("EDQUOT");
    expect(await outcome(fs.symlink("x", "one-more"))).toBe("EDQUOT");
    expect(await outcome(fs.mkfifo("one-more"))).toBe("EDQUOT");
    await fs.unlink("file0");
    expect(await outcome(fs.mkdir("one-more"))).toBe("ok");
    await fs.chdir("/");
  });

  test("what a delta already holds counts after a remount", async () => {
    await using workspace = await openWorkspace({
      lower: {},
      quota: { bytes: 2 * MEBIBYTE },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    await fill(fs, `${workspace.mountPoint}/first`, MEBIBYTE + MEBIBYTE / 2);
    await workspace.remount();
    expect(await outcome(fill(fs, `${workspace.mountPoint}/second`, MEBIBYTE))).toBe("EDQUOT");
  });

  test("space that is allocated behind the end of files counts, also after a remount, and is given back", async () => {
    await using workspace = await openWorkspace({
      lower: {},
      quota: { bytes: 2 * MEBIBYTE },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    await fs.chdir(workspace.mountPoint);
    const outcomes: string[] = [];
    for (let index = 0; index < 16; index++) {
      const fd = await fs.open(`file${index}`, "O_RDWR|O_CREAT");
      outcomes.push(await outcome(fs.fallocate(fd, "KEEP_SIZE", 0, MEBIBYTE / 4)));
      await fs.close(fd);
    }
    expect(outcomes.filter((each) => each === "ok").length).toBeLessThanOrEqual(8);
    expect(outcomes.at(-1)).toBe("EDQUOT");
    expect(bytesOnDisk(workspace)).toBeLessThanOrEqual(2 * MEBIBYTE + PIECE.length);
    await fs.chdir("/");
    await workspace.remount();
    await fs.chdir(workspace.mountPoint);
    expect(await outcome(fill(fs, "more", MEBIBYTE))).toBe("EDQUOT");
    for (const name of await fs.listdir(".")) await fs.unlink(name);
    expect(await outcome(fill(fs, "again", 2 * MEBIBYTE))).toBe("ok");
    await fs.chdir("/");
  });

  test("what is allocated already can be allocated again when the quota is used up", async () => {
    await using workspace = await openWorkspace({
      lower: {},
      quota: { bytes: 2 * MEBIBYTE },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    const fd = await fs.open(`${workspace.mountPoint}/file`, "O_RDWR|O_CREAT");
    expect(await outcome(fs.fallocate(fd, "", 0, 2 * MEBIBYTE))).toBe("ok");
    expect(await outcome(fs.fallocate(fd, "", 0, 2 * MEBIBYTE))).toBe("ok");
    expect(await outcome(fs.pwrite(fd, PIECE, MEBIBYTE))).toBe("ok");
    expect(await outcome(fs.fallocate(fd, "KEEP_SIZE", 2 * MEBIBYTE, MEBIBYTE))).toBe("EDQUOT");
    await fs.close(fd);
  });

  const TRUNCATIONS: Readonly<Record<string, (fs: Caller, path: string) => Promise<unknown>>> = {
    "an open that truncates": async (fs, path) => fs.close(await fs.open(path, "O_WRONLY|O_TRUNC")),
    truncate: (fs, path) => fs.truncate(path, 0),
    "truncate to less": (fs, path) => fs.truncate(path, 4096),
    ftruncate: async (fs, path) => {
      const fd = await fs.open(path, "O_WRONLY");
      await fs.ftruncate(fd, 0);
      await fs.close(fd);
    },
    "a rename over it": async (fs, path) => {
      await write(fs, `${path}.new`, "");
      await fs.rename(`${path}.new`, path);
    },
    "an unlink": (fs, path) => fs.unlink(path),
  };
  const NAMES = ["1", "2", "3", "4"];
  for (const [title, shorten] of Object.entries(TRUNCATIONS)) {
    test(`a codebase file gives back nothing that was not taken for it: ${title}`, async () => {
      await using workspace = await openWorkspace({
        lower: Object.fromEntries(NAMES.map((name) => [name, name.repeat(MEBIBYTE / 4)])),
        quota: { bytes: 2 * MEBIBYTE },
        rules: EVERYTHING_WRITABLE,
      });
      await using fs = await startCaller();
      await fill(fs, `${workspace.mountPoint}/kept`, MEBIBYTE);
      const { available } = await fs.statfs(workspace.mountPoint);
      for (const name of NAMES) await shorten(fs, `${workspace.mountPoint}/${name}`);
      expect((await fs.statfs(workspace.mountPoint)).available).toBeLessThanOrEqual(available);
      expect(await outcome(fill(fs, `${workspace.mountPoint}/new`, 3 * MEBIBYTE))).toBe("EDQUOT");
      expect(bytesOnDisk(workspace)).toBeLessThanOrEqual(2 * MEBIBYTE);
    });
  }

  test("removed files that somebody still knows make room, oldest first, and take none", async () => {
    await using workspace = await openWorkspace({
      lower: {},
      quota: { bytes: 2 * MEBIBYTE },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    await fs.chdir(workspace.mountPoint);
    const known: number[] = [];
    for (let index = 0; index < 8; index++) {
      await fill(fs, "file", MEBIBYTE);
      known.push(await fs.open("file", "O_PATH"));
      await fs.unlink("file");
      expect(bytesOnDisk(workspace) + removedBytes(workspace)).toBeLessThanOrEqual(2 * MEBIBYTE);
    }
    const reopened = await Promise.all(known.map((fd) => outcome(fs.open(`/proc/self/fd/${fd}`, "O_RDONLY"))));
    expect(reopened.slice(0, 6)).toEqual(Array(6).fill("ESTALE"));
    expect(reopened.at(-1)).toBe("ok");
    await fs.chdir("/");
  });

  test("a mount without a delta is read-only: EROFS for every change", async () => {
    await using workspace = await openWorkspace({
      lower: { file: "file", directory: {} },
      delta: false,
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    await fs.chdir(workspace.mountPoint);
    expect(await read(fs, "file")).toBe("file");
    expect(await outcome(fs.open("file", "O_WRONLY"))).toBe("EROFS");
    expect(await outcome(fs.open("new", "O_WRONLY|O_CREAT"))).toBe("EROFS");
    expect(await outcome(fs.mkdir("new"))).toBe("EROFS");
    expect(await outcome(fs.unlink("file"))).toBe("EROFS");
    expect(await outcome(fs.rmdir("directory"))).toBe("EROFS");
    expect(await outcome(fs.rename("file", "new"))).toBe("EROFS");
    expect(await outcome(fs.chmod("file", 0o600))).toBe("EROFS");
    expect(await outcome(fs.truncate("file", 0))).toBe("EROFS");
    await fs.chdir("/");
  });
});

/** What the files with names take on the host's disk. */
function bytesOnDisk({ delta }: TestWorkspace): number {
  const tree = `${delta}/tree`;
  return readdirSync(tree).reduce((sum, name) => sum + lstatSync(`${tree}/${name}`).blocks * 512, 0);
}

/** What the daemon keeps on the disk of files that have no name any more. */
function removedBytes({ daemonPid, delta }: TestWorkspace): number {
  const directory = `/proc/${daemonPid}/fd`;
  const sizes = new Map<number, number>();
  for (const fd of readdirSync(directory)) {
    const target = readlinkSync(`${directory}/${fd}`);
    if (!target.startsWith(delta) || !target.endsWith(" (deleted)")) continue;
    const { ino, blocks, nlink } = statSync(`${directory}/${fd}`);
    if (nlink === 0) sizes.set(ino, blocks * 512);
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

async function fill(fs: Caller, path: string, bytes: number): Promise<void> {
  const fd = await fs.open(path, "O_WRONLY|O_CREAT");
  try {
    for (let written = 0; written < bytes; ) written += await fs.write(fd, PIECE);
  } finally {
    await fs.close(fd);
  }
}
