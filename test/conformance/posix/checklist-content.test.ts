import { expect, test } from "vitest";
import { outcome } from "./caller.ts";
import { append, describeMounted, read, write } from "./mounted.ts";

const GIBIBYTE = 1024 ** 3;

describeMounted(
  "POSIX checklist: content",
  { lower: { appended: "", content: "0123456789".repeat(1000), directory: {} } },
  (m) => {
    test("O_APPEND: 8 processes append to one codebase file and no line is lost", async () => {
      const lines = 200;
      const writers = await Promise.all(Array.from({ length: 8 }, () => m.another()));
      const script = `
import os, sys
fd = os.open("appended", os.O_WRONLY | os.O_APPEND)
for line in range(${lines}): os.write(fd, f"{sys.argv[1]} {line} {'x' * (line % 50)}\\n".encode())`;
      const runs = await Promise.all(
        writers.map((writer, index) => writer.run(["python3", "-c", script, String(index)])),
      );
      expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(runs.map(() => ({ code: 0, stderr: "" })));
      const found = (await read(m.fs, "appended")).trimEnd().split("\n").sort();
      const expected = writers.flatMap((_, writer) =>
        Array.from({ length: lines }, (_, line) => `${writer} ${line} ${"x".repeat(line % 50)}`),
      );
      expect(found).toEqual(expected.sort());
    });

    test("O_APPEND: pwrite to such a descriptor appends, as Linux has it", async () => {
      const { fs } = m;
      await write(fs, "append-offset", "abc");
      const fd = await fs.open("append-offset", "O_RDWR|O_APPEND");
      await fs.pwrite(fd, "X", 0);
      expect(await fs.pread(fd, 10, 0)).toBe("abcX");
      await fs.close(fd);
    });

    test("fallocate: allocates, keeps the size, punches holes, zeroes ranges, and refuses the rest", async () => {
      const { fs } = m;
      const fd = await fs.open("allocated", "O_RDWR|O_CREAT");
      await fs.fallocate(fd, "", 0, 10_000);
      expect((await fs.fstat(fd)).size).toBe(10_000);
      await fs.fallocate(fd, "KEEP_SIZE", 0, 100_000);
      expect((await fs.fstat(fd)).size).toBe(10_000);
      await fs.pwrite(fd, "x".repeat(10_000), 0);
      await fs.fallocate(fd, "PUNCH_HOLE|KEEP_SIZE", 4096, 4096);
      expect(await fs.pread(fd, 3, 4095)).toBe("x\0\0");
      await fs.fallocate(fd, "ZERO_RANGE", 9_000, 2_000);
      expect([(await fs.fstat(fd)).size, await fs.pread(fd, 2, 8_999)]).toEqual([11_000, "x\0"]);
      expect(await outcome(fs.fallocate(fd, "COLLAPSE_RANGE", 0, 4096))).toBe("EOPNOTSUPP");
      await fs.close(fd);
    });

    test("copy_file_range: copies between files of the mount at offsets, and stops at the end", async () => {
      const { fs } = m;
      const source = await fs.open("content", "O_RDONLY");
      const target = await fs.open("copied", "O_RDWR|O_CREAT");
      expect(await fs.copyFileRange(source, target, 20, 5, 100)).toBe(20);
      expect(await fs.pread(target, 200, 0)).toBe(`${"\0".repeat(100)}56789012345678901234`);
      expect(await fs.copyFileRange(source, target, 1_000_000, 9_995, 0)).toBe(5);
      expect(await fs.copyFileRange(source, target, 10, 50_000, 0)).toBe(0);
      await fs.close(source);
      await fs.close(target);
      expect((await fs.run(["cp", "--reflink=auto", "content", "copied-by-cp"])).code).toBe(0);
      expect(await read(fs, "copied-by-cp")).toBe(await read(fs, "content"));
    });

    test("lseek: SEEK_DATA and SEEK_HOLE find the parts of a sparse file", async () => {
      const { fs } = m;
      const fd = await fs.open("sparse", "O_RDWR|O_CREAT");
      await fs.pwrite(fd, "x".repeat(4096), 1024 * 1024);
      await fs.ftruncate(fd, 2 * 1024 * 1024);
      expect(await fs.lseek(fd, 0, "SEEK_DATA")).toBe(1024 * 1024);
      expect(await fs.lseek(fd, 1024 * 1024, "SEEK_HOLE")).toBe(1024 * 1024 + 4096);
      expect(await fs.lseek(fd, 0, "SEEK_HOLE")).toBe(0);
      expect(await outcome(fs.lseek(fd, 1024 * 1024 + 4096, "SEEK_DATA"))).toBe("ENXIO");
      expect(await outcome(fs.lseek(fd, 2 * 1024 * 1024, "SEEK_HOLE"))).toBe("ENXIO");
      await fs.close(fd);
    });

    test("files beyond 4 GiB: sizes, offsets and content are right", async () => {
      const { fs } = m;
      const fd = await fs.open("huge", "O_RDWR|O_CREAT");
      await fs.pwrite(fd, "far", 5 * GIBIBYTE);
      expect((await fs.fstat(fd)).size).toBe(5 * GIBIBYTE + 3);
      expect(await fs.pread(fd, 10, 5 * GIBIBYTE)).toBe("far");
      expect(await fs.pread(fd, 2, 4 * GIBIBYTE)).toBe("\0\0");
      await fs.ftruncate(fd, 6 * GIBIBYTE);
      expect((await fs.stat("huge")).size).toBe(6 * GIBIBYTE);
      await fs.close(fd);
      await append(fs, "huge", "end");
      expect((await fs.stat("huge")).size).toBe(6 * GIBIBYTE + 3);
      await fs.unlink("huge");
    });

    test("fsync: of files and directories succeeds", async () => {
      const { fs } = m;
      const [file, directory] = [
        await fs.open("appended", "O_RDWR"),
        await fs.open("directory", "O_RDONLY|O_DIRECTORY"),
      ];
      await fs.write(file, "x");
      expect([await outcome(fs.fsync(file)), await outcome(fs.fsync(directory))]).toEqual(["ok", "ok"]);
      await fs.close(file);
      await fs.close(directory);
    });

    test("locks: flock and fcntl locks exclude other processes and end with their owner", async () => {
      const [one, two] = [m.fs, await m.another()];
      const [mine, theirs] = [await one.open("content", "O_RDWR"), await two.open("content", "O_RDWR")];
      await one.flock(mine, "exclusive");
      expect(await outcome(two.flock(theirs, "shared"))).toBe("EAGAIN");
      await one.flock(mine, "none");
      await one.lock(mine, "write", 0, 100);
      expect(await outcome(two.lock(theirs, "read", 50, 10))).toMatch(/^(EAGAIN|EACCES)$/);
      expect(await outcome(two.lock(theirs, "write", 100, 10))).toBe("ok");
      await one.close(mine);
      expect(await outcome(two.lock(theirs, "write", 0, 0))).toBe("ok");
      await two.close(theirs);
    });

    test("mmap: a shared mapping reaches the file, also after its descriptor was closed", async () => {
      const { fs } = m;
      await write(fs, "mapped", "-".repeat(8192));
      const fd = await fs.open("mapped", "O_RDWR");
      const map = await fs.map(fd, 8192);
      await fs.close(fd);
      await fs.mapWrite(map, 4090, "across two pages");
      expect(await (await m.another()).run(["cut", "-c4091-4106", "mapped"])).toMatchObject({
        stdout: "across two pages\n",
      });
      await fs.mapFlush(map);
      await fs.mapWrite(map, 0, "last");
      await fs.unmap(map);
      expect((await read(fs, "mapped")).slice(0, 8)).toBe("last----");
      expect((await read(fs, "mapped")).slice(4090, 4106)).toBe("across two pages");
    });

    test("mmap: a mapping of a codebase file for writing leaves the codebase alone", async () => {
      const { fs } = m;
      const fd = await fs.open("content", "O_RDWR");
      const map = await fs.map(fd, 10_000);
      await fs.mapWrite(map, 0, "MAPPED");
      await fs.unmap(map);
      await fs.close(fd);
      expect((await read(fs, "content")).slice(0, 10)).toBe("MAPPED6789");
      m.workspace.assertLowerUntouched();
    });

    test("O_TMPFILE: an unnamed file can be given a name, or the flag is refused cleanly", async () => {
      const { fs } = m;
      const opened = await outcome(fs.open(".", "O_TMPFILE|O_RDWR", 0o600));
      if (opened !== "ok") {
        expect(opened).toBe("EOPNOTSUPP");
        return;
      }
      const fd = await fs.open(".", "O_TMPFILE|O_RDWR", 0o600);
      await fs.write(fd, "named at last");
      expect((await fs.fstat(fd)).nlink).toBe(0);
      await fs.link(`/proc/self/fd/${fd}`, "named", true);
      expect((await fs.fstat(fd)).nlink).toBe(1);
      expect(await read(fs, "named")).toBe("named at last");
      await fs.close(fd);
    });

    test("stale attributes: what one process changes, another sees at once by path and by descriptor", async () => {
      const [one, two] = [m.fs, await m.another()];
      await write(one, "shared", "12345");
      const fd = await two.open("shared", "O_RDONLY");
      expect((await two.fstat(fd)).size).toBe(5);
      await append(one, "shared", "67890");
      expect([(await two.fstat(fd)).size, (await two.lstat("shared")).size]).toEqual([10, 10]);
      expect(await two.read(fd, 100)).toBe("1234567890");
      await one.chmod("shared", 0o600);
      expect([(await two.fstat(fd)).mode, (await two.lstat("shared")).mode]).toEqual([0o600, 0o600]);
      await one.truncate("shared", 2);
      expect([(await two.fstat(fd)).size, await two.pread(fd, 100, 0)]).toEqual([2, "12"]);
      await two.close(fd);
    });
  },
);
