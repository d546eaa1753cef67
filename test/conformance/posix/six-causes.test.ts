import { expect, test } from "vitest";
import { AT } from "../../support/constants.ts";
import { outcome } from "./caller.ts";
import { describeMounted, read, write } from "./mounted.ts";

/** The reasons for which FUSE file systems fail POSIX suites; each is a promise here. */
describeMounted(
  "the six causes of POSIX failures are absent",
  { lower: { "in-codebase": "text", other: "text" } },
  (m) => {
    test("a path of 4,000 bytes works in every call: the daemon puts nothing in front of it", async () => {
      const { fs } = m;
      const segments = Array.from({ length: 15 }, (_, level) => `${level}`.padEnd(255, "d"));
      for (let depth = 1; depth <= segments.length; depth++) await fs.mkdir(segments.slice(0, depth).join("/"));
      const directory = segments.join("/");
      const name = (letter: string) => `${directory}/${letter.repeat(4000 - directory.length - 1)}`;
      const [file, renamed, linked] = [name("f"), name("r"), name("l")];
      expect(file.length).toBe(4000);

      await write(fs, file, "far down");
      await fs.chmod(file, 0o600);
      expect(await fs.stat(file)).toMatchObject({ type: "file", size: 8, mode: 0o600 });
      await fs.rename(file, renamed);
      await fs.link(renamed, linked);
      expect(await read(fs, linked)).toBe("far down");
      expect(await fs.listdir(directory)).toHaveLength(2);
      await fs.unlink(linked);
      await fs.symlink("target", linked);
      expect(await fs.readlink(linked)).toBe("target");
      await fs.setxattr(renamed, "user.deep", "yes");
      expect(await fs.getxattr(renamed, "user.deep")).toBe("yes");
      await fs.truncate(renamed, 3);
      expect(await read(fs, renamed)).toBe("far");
      await fs.unlink(renamed);
      await fs.unlink(linked);
      for (let depth = segments.length; depth >= 1; depth--) await fs.rmdir(segments.slice(0, depth).join("/"));
    });

    for (const length of [256, 257, 1000, 1023, 1024, 1025, 4000]) {
      test(`a name of ${length} bytes is ENAMETOOLONG in every call`, async () => {
        const { fs } = m;
        const long = "x".repeat(length);
        const calls = {
          lstat: fs.lstat(long),
          open: fs.open(long, "O_RDONLY"),
          create: fs.open(long, "O_WRONLY|O_CREAT"),
          mkdir: fs.mkdir(long),
          mkfifo: fs.mkfifo(long),
          symlink: fs.symlink("a", long),
          link: fs.link("in-codebase", long),
          renameOnto: fs.rename("in-codebase", long),
          renameFrom: fs.rename(long, "y"),
          unlink: fs.unlink(long),
          rmdir: fs.rmdir(long),
          truncate: fs.truncate(long, 0),
          chmod: fs.chmod(long, 0o600),
          below: fs.lstat(`${long}/child`),
        };
        const outcomes = await Promise.all(
          Object.entries(calls).map(async ([name, call]) => [name, await outcome(call)]),
        );
        expect(Object.fromEntries(outcomes)).toEqual(
          Object.fromEntries(Object.keys(calls).map((name) => [name, "ENAMETOOLONG"])),
        );
      });
    }

    test("the limit counts bytes: 127 two-byte letters fit, 128 do not", async () => {
      const { fs } = m;
      await write(fs, "é".repeat(127), "");
      expect(await outcome(fs.open("é".repeat(128), "O_WRONLY|O_CREAT"))).toBe("ENAMETOOLONG");
      expect(await fs.listdir(".")).toContain("é".repeat(127));
    });

    test("nlink is right at the other name after link and unlink", async () => {
      const { fs } = m;
      await write(fs, "first", "shared");
      await fs.link("first", "second");
      await fs.link("second", "third");
      expect(await Promise.all(["first", "second", "third"].map(async (name) => (await fs.lstat(name)).nlink))).toEqual(
        [3, 3, 3],
      );
      await fs.unlink("second");
      expect(await Promise.all(["first", "third"].map(async (name) => (await fs.lstat(name)).nlink))).toEqual([2, 2]);
      await write(fs, "fourth", "");
      await fs.rename("fourth", "third");
      expect((await fs.lstat("first")).nlink).toBe(1);
      expect((await fs.lstat("first")).ino).not.toBe((await fs.lstat("third")).ino);
    });

    test("nlink is right at the other name when the file came from the codebase", async () => {
      const { fs } = m;
      expect((await fs.lstat("in-codebase")).nlink).toBe(1);
      await fs.link("in-codebase", "in-delta");
      expect([(await fs.lstat("in-codebase")).nlink, (await fs.lstat("in-delta")).nlink]).toEqual([2, 2]);
      expect((await fs.lstat("in-codebase")).ino).toBe((await fs.lstat("in-delta")).ino);
      await fs.unlink("in-codebase");
      expect((await fs.lstat("in-delta")).nlink).toBe(1);
    });

    test("a file that lost the name it was opened by is the same file under the name it has left", async () => {
      const { fs, workspace } = m;
      await write(fs, "opened-by", "first");
      await fs.link("opened-by", "left");
      workspace.forgetNames(); // now only the name that is used next is known
      const fd = await fs.open("opened-by", "O_RDWR");
      const handle = await fs.handle("opened-by", AT.HANDLE_FID);
      await fs.unlink("opened-by");
      expect(await fs.handle("left", AT.HANDLE_FID)).toEqual(handle);
      expect(await fs.pread(fd, 10, 0)).toBe("first");
      await write(fs, "left", "second");
      expect(await fs.pread(fd, 10, 0)).toBe("second");
      expect((await fs.fstat(fd)).nlink).toBe(1);
      await fs.close(fd);
    });

    test("fstat of an open file that was unlinked says nlink 0", async () => {
      const { fs } = m;
      const made = await fs.open("unlinked", "O_RDWR|O_CREAT");
      const reader = await fs.open("other", "O_RDONLY");
      await fs.unlink("unlinked");
      await fs.unlink("other");
      expect([(await fs.fstat(made)).nlink, (await fs.fstat(reader)).nlink]).toEqual([0, 0]);
      await fs.close(made);
      await fs.close(reader);
    });

    test("fstat of an open file that another was renamed onto says nlink 0", async () => {
      const { fs } = m;
      const replaced = await fs.open("replaced", "O_RDWR|O_CREAT");
      await write(fs, "replacement", "");
      await fs.rename("replacement", "replaced");
      expect((await fs.fstat(replaced)).nlink).toBe(0);
      await fs.close(replaced);
    });

    test("new entries of every kind belong to the caller, not to the daemon", async () => {
      await m.fs.mkdir("everyones");
      await m.fs.chmod("everyones", 0o777);
      const someone = await m.another(12345, 23456);
      await write(someone, "everyones/file", "");
      await someone.mkdir("everyones/directory");
      await someone.symlink("x", "everyones/symlink");
      await someone.mkfifo("everyones/fifo");
      await someone.bindSocket("everyones/socket");
      await someone.closeSocket("everyones/socket");
      for (const name of await someone.listdir("everyones")) {
        expect(await someone.lstat(`everyones/${name}`), name).toMatchObject({ type: name, uid: 12345, gid: 23456 });
      }
    });

    for (const [atime, mtime] of [
      ["omit", "omit"],
      ["omit", "1000000000123456789"],
      ["1000000000123456789", "omit"],
      ["omit", "now"],
      ["now", "omit"],
      ["now", "1000000000000000001"],
      ["1000000000000000001", "now"],
      ["now", "now"],
    ] as const) {
      test(`utimensat sets atime (${atime}) and mtime (${mtime}) one by one`, async () => {
        const { fs } = m;
        const before = { atime: "1111111111111111111", mtime: "1222222222222222222" };
        await write(fs, "timed", "");
        await fs.utimens("timed", before.atime, before.mtime);
        const startNs = BigInt(Date.now()) * 1_000_000n - 1_000_000_000n;
        await fs.utimens("timed", atime, mtime);
        const after = await fs.lstat("timed");
        const expectation = { atime, mtime };
        for (const which of ["atime", "mtime"] as const) {
          if (expectation[which] === "now") expect(BigInt(after[which]), which).toBeGreaterThan(startNs);
          else expect(after[which], which).toBe(expectation[which] === "omit" ? before[which] : expectation[which]);
        }
      });
    }
  },
);
