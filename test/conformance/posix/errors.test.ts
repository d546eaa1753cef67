import { expect, test } from "vitest";
import { link } from "../../support/tree.ts";
import { type Caller, outcome } from "./caller.ts";
import { describeMountedByAnyone, write } from "./mounted.ts";

/** Each row is one call that must fail, and how. */
const FAILURES: readonly (readonly [title: string, errno: string, call: (fs: Caller) => Promise<unknown>])[] = [
  ["open of a missing file", "ENOENT", (fs) => fs.open("missing", "O_RDONLY")],
  ["open of an empty path", "ENOENT", (fs) => fs.open("", "O_RDONLY")],
  ["open below a missing directory", "ENOENT", (fs) => fs.open("missing/file", "O_WRONLY|O_CREAT")],
  ["open below a file", "ENOTDIR", (fs) => fs.open("file/below", "O_RDONLY")],
  ["create below a file", "ENOTDIR", (fs) => fs.open("file/below", "O_WRONLY|O_CREAT")],
  ["a file with a trailing slash", "ENOTDIR", (fs) => fs.lstat("file/")],
  ["create with a trailing slash", "EISDIR", (fs) => fs.open("new/", "O_WRONLY|O_CREAT")],
  ["open of a directory for writing", "EISDIR", (fs) => fs.open("directory", "O_WRONLY")],
  ["open of a directory with O_CREAT", "EISDIR", (fs) => fs.open("directory", "O_RDONLY|O_CREAT")],
  ["truncate of a directory", "EISDIR", (fs) => fs.truncate("directory", 0)],
  ["unlink of a directory", "EISDIR", (fs) => fs.unlink("directory")],
  ["O_DIRECTORY on a file", "ENOTDIR", (fs) => fs.open("file", "O_RDONLY|O_DIRECTORY")],
  ["O_EXCL on a file", "EEXIST", (fs) => fs.open("file", "O_WRONLY|O_CREAT|O_EXCL")],
  ["O_EXCL on a directory", "EEXIST", (fs) => fs.open("directory", "O_WRONLY|O_CREAT|O_EXCL")],
  ["O_EXCL on a dangling link", "EEXIST", (fs) => fs.open("dangling", "O_WRONLY|O_CREAT|O_EXCL")],
  ["O_NOFOLLOW on a link", "ELOOP", (fs) => fs.open("to-file", "O_RDONLY|O_NOFOLLOW")],
  ["open through a loop of links", "ELOOP", (fs) => fs.open("loop-a", "O_RDONLY")],
  ["open through a link to itself", "ELOOP", (fs) => fs.open("self/x", "O_RDONLY")],
  ["open of a dangling link", "ENOENT", (fs) => fs.open("dangling", "O_RDONLY")],
  ["mkdir of what exists", "EEXIST", (fs) => fs.mkdir("directory")],
  ["mkdir over a file", "EEXIST", (fs) => fs.mkdir("file")],
  ["mkdir over a dangling link", "EEXIST", (fs) => fs.mkdir("dangling")],
  ["mkdir below a missing directory", "ENOENT", (fs) => fs.mkdir("missing/new")],
  ["rmdir of a file", "ENOTDIR", (fs) => fs.rmdir("file")],
  ["rmdir of a full directory", "ENOTEMPTY", (fs) => fs.rmdir("directory")],
  ["rmdir of a missing directory", "ENOENT", (fs) => fs.rmdir("missing")],
  ["rmdir of .", "EINVAL", (fs) => fs.rmdir("directory/.")],
  ["rmdir of ..", "ENOTEMPTY", (fs) => fs.rmdir("directory/sub/..")],
  ["unlink of a missing file", "ENOENT", (fs) => fs.unlink("missing")],
  ["unlink with a trailing slash", "ENOTDIR", (fs) => fs.unlink("file/")],
  ["symlink over what exists", "EEXIST", (fs) => fs.symlink("x", "file")],
  ["symlink with an empty target", "ENOENT", (fs) => fs.symlink("", "new-link")],
  ["link of a missing file", "ENOENT", (fs) => fs.link("missing", "new")],
  ["link of a directory", "EPERM", (fs) => fs.link("directory", "new")],
  ["link over what exists", "EEXIST", (fs) => fs.link("file", "directory/inside")],
  ["readlink of a file", "EINVAL", (fs) => fs.readlink("file")],
  ["readlink of a missing file", "ENOENT", (fs) => fs.readlink("missing")],
  ["listing of a file", "ENOTDIR", (fs) => fs.listdir("file")],
  ["truncate of a missing file", "ENOENT", (fs) => fs.truncate("missing", 0)],
  ["truncate to less than nothing", "EINVAL", (fs) => fs.truncate("file", -1)],
  ["chmod of a missing file", "ENOENT", (fs) => fs.chmod("missing", 0o600)],
  ["chmod of a dangling link", "ENOENT", (fs) => fs.chmod("dangling", 0o600)],
  ["mkfifo over what exists", "EEXIST", (fs) => fs.mkfifo("file")],
  ["rename of . ", "EBUSY", (fs) => fs.rename("directory/.", "new")],
  ["a user attribute that is not there", "ENODATA", (fs) => fs.getxattr("file", "user.missing")],
  ["removing a user attribute that is not there", "ENODATA", (fs) => fs.removexattr("file", "user.missing")],
];

describeMountedByAnyone(
  "errors",
  {
    lower: {
      file: "file",
      directory: { inside: "inside", sub: {} },
      "to-file": link("file"),
      dangling: link("nowhere"),
      "loop-a": link("loop-b"),
      "loop-b": link("loop-a"),
      self: link("self"),
    },
  },
  (m) => {
    for (const [title, errno, call] of FAILURES) {
      test(`${title} is ${errno}`, async () => {
        const before = await m.fs.listing(".", "0");
        expect(await outcome(call(m.fs))).toBe(errno);
        expect(await m.fs.listing(".", "0")).toEqual(before);
      });
    }

    test("reading a descriptor of the wrong kind or mode is EBADF or EISDIR", async () => {
      const { fs } = m;
      const [reader, writer, directory] = [
        await fs.open("file", "O_RDONLY"),
        await fs.open("written", "O_WRONLY|O_CREAT"),
        await fs.open("directory", "O_RDONLY"),
      ];
      expect(await outcome(fs.write(reader, "x"))).toBe("EBADF");
      expect(await outcome(fs.ftruncate(reader, 0))).toBe("EINVAL");
      expect(await outcome(fs.read(writer, 1))).toBe("EBADF");
      expect(await outcome(fs.read(directory, 1))).toBe("EISDIR");
      for (const fd of [reader, writer, directory]) await fs.close(fd);
    });

    test("a directory that is removed while somebody is in it is empty and takes nothing new", async () => {
      const { fs } = m;
      await fs.mkdir("removed");
      const inside = await m.another();
      await inside.chdir("removed");
      await fs.rmdir("removed");
      expect(await outcome(inside.lstat("."))).toBe("ok");
      expect(await outcome(inside.open("new", "O_WRONLY|O_CREAT"))).toBe("ENOENT");
      expect(await outcome(inside.mkdir("new"))).toBe("ENOENT");
      expect(await inside.listdir(".")).toEqual([]);
      await fs.mkdir("removed");
      await write(fs, "removed/new", "");
      expect(await outcome(inside.lstat("new"))).toBe("ENOENT");
    });
  },
);
