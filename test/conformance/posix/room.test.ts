import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { openWorkspace } from "../../support/workspace.ts";
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

async function fill(fs: Caller, path: string, bytes: number): Promise<void> {
  const fd = await fs.open(path, "O_WRONLY|O_CREAT");
  try {
    for (let written = 0; written < bytes; ) written += await fs.write(fd, PIECE);
  } finally {
    await fs.close(fd);
  }
}
