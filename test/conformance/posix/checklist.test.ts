import { expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { file, link } from "../../support/tree.ts";
import { type Caller, outcome } from "./caller.ts";
import { append, describeMounted, read, write } from "./mounted.ts";

const SECOND = 1_000_000_000n;

describeMounted(
  "POSIX checklist",
  {
    lower: {
      lifetimes: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`file${index}`, `content ${index}`])),
      kinds: { thing: "a file" },
      content: "0123456789".repeat(1000),
      script: file({ content: "#!/bin/sh\necho from the mount\n", mode: 0o755 }),
      plain: file({ content: "#!/bin/sh\necho no\n", mode: 0o644 }),
      setuid: file({ content: "#!/bin/sh\n", mode: 0o6755 }),
      "write-times": file({ content: "text", mtime: 1_000_000_000 }),
      "truncate-times": file({ content: "text", mtime: 1_000_000_000 }),
      "chmod-times": file({ content: "text", mtime: 1_000_000_000 }),
      pointer: link("some/target/of/31/characters.txt"),
    },
  },
  (m) => {
    test("lifetimes: names that come and go keep meaning what they mean", async () => {
      const { fs } = m;
      for (let round = 0; round < 3; round++) {
        for (let index = 0; index < 50; index++) {
          const path = `lifetimes/file${index}`;
          await outcome(fs.lstat(path));
          if (index % 3 === round) await fs.unlink(path);
          else if (index % 3 === (round + 1) % 3) await write(fs, path, `content ${index}`);
        }
      }
      const left = Array.from({ length: 50 }, (_, index) => index).filter((index) => index % 3 === 0);
      expect(await fs.listdir("lifetimes")).toEqual(left.map((index) => `file${index}`).sort());
      for (const name of await fs.listdir("lifetimes")) {
        expect(await read(fs, `lifetimes/${name}`)).toBe(`content ${name.slice(4)}`);
      }
    });

    test("lifetimes: a client that is killed in the middle of its calls leaves the mount as it was", async () => {
      const { fs } = m;
      await fs.run([
        "timeout",
        "-s",
        "KILL",
        "0.3",
        "sh",
        "-c",
        "while :; do ls -lR . >/dev/null; cat content >/dev/null; done",
      ]);
      expect(await read(fs, "content")).toHaveLength(10_000);
    });

    test("type change: a name that becomes a directory, a link, a FIFO and a file is each of them in turn", async () => {
      const { fs } = m;
      const path = "kinds/thing";
      const type = async () => (await fs.lstat(path)).type;
      expect(await type()).toBe("file");
      await fs.unlink(path);
      await fs.mkdir(path);
      expect(await type()).toBe("directory");
      await fs.rmdir(path);
      await fs.symlink("elsewhere", path);
      expect(await type()).toBe("symlink");
      await fs.unlink(path);
      await fs.mkfifo(path);
      expect(await type()).toBe("fifo");
      await fs.unlink(path);
      await write(fs, path, "again");
      expect(await type()).toBe("file");
    });

    test("statx: asking for the birth time works like any stat", async () => {
      const { fs } = m;
      expect(await fs.run(["stat", "-c", "%s %F", "content"])).toMatchObject({
        code: 0,
        stdout: "10000 regular file\n",
      });
      expect((await fs.run(["stat", "-c", "%W %s", "content"])).stdout).toMatch(/^-?\d+ 10000\n$/);
    });

    test("statfs: names may have 255 bytes, and every path of the mount gives the same answer", async () => {
      const { fs } = m;
      const found = await fs.statfs(".");
      expect(found.nameMax).toBe(255);
      expect(await fs.statfs("lifetimes")).toEqual(found);
      expect(found.blocks).toBeGreaterThan(0);
    });

    test("umask: takes its bits from the mode of new files and directories", async () => {
      const { fs } = m;
      await fs.umask(0o027);
      await fs.close(await fs.open("masked", "O_WRONLY|O_CREAT", 0o666));
      await fs.mkdir("masked-directory", 0o777);
      await fs.umask(0o022);
      expect([(await fs.lstat("masked")).mode, (await fs.lstat("masked-directory")).mode]).toEqual([0o640, 0o750]);
    });

    test("setgid directories: the bit is dropped like setuid, so new entries take the group of who makes them", async () => {
      const { fs } = m;
      await fs.mkdir("team");
      await fs.chown("team", 0, 4242);
      await fs.chmod("team", 0o2777);
      const someone = await m.another(1234, 1234);
      await write(someone, "team/file", "");
      await someone.mkdir("team/directory");
      await someone.symlink("x", "team/link");
      expect((await fs.lstat("team")).mode).toBe(0o777);
      expect(await fs.lstat("team/file")).toMatchObject({ uid: 1234, gid: 1234 });
      expect(await fs.lstat("team/link")).toMatchObject({ uid: 1234, gid: 1234 });
      expect(await fs.lstat("team/directory")).toMatchObject({ uid: 1234, gid: 1234, mode: 0o755 });
    });

    test("setuid bits: those of the codebase and those of chmod are dropped", async () => {
      const { fs } = m;
      expect((await fs.lstat("setuid")).mode).toBe(0o755);
      await fs.chmod("script", 0o4755);
      expect((await fs.lstat("script")).mode).toBe(0o755);
      await fs.close(await fs.open("new-setuid", "O_WRONLY|O_CREAT", 0o6755));
      expect((await fs.lstat("new-setuid")).mode).toBe(0o755);
      await append(fs, "setuid", "# more\n");
      expect((await fs.lstat("setuid")).mode).toBe(0o755);
    });

    test("ACL: the names of POSIX ACLs are not supported, and say so", async () => {
      const { fs } = m;
      expect(await outcome(fs.getxattr("content", "system.posix_acl_access"))).toMatch(/^(EOPNOTSUPP|ENODATA)$/);
      expect(await outcome(fs.setxattr("content", "system.posix_acl_access", "\x02\0\0\0"))).toMatch(
        /^(EOPNOTSUPP|EINVAL|EPERM)$/,
      );
    });

    test("exec: programs of the mount run, but not without the x bit", async () => {
      const { fs } = m;
      expect(await fs.run(["./script"])).toMatchObject({ code: 0, stdout: "from the mount\n" });
      expect(await outcome(fs.run(["./plain"]))).toBe("EACCES");
      await fs.run(["cp", "/bin/echo", "echo"]);
      expect(await fs.run(["./echo", "copied"])).toMatchObject({ code: 0, stdout: "copied\n" });
    });

    test("exec: a program that runs cannot be written (ETXTBSY), and can be again when it ended", async () => {
      const { fs } = m;
      await fs.run(["cp", "/bin/cat", "program"]);
      const runner = await m.another();
      // It runs until its input ends, which is when this test lets go of the pipe.
      await fs.run(["mkfifo", "input"]);
      const running = runner.run(["sh", "-c", "exec ./program < input > output"]);
      const input = await fs.open("input", "O_WRONLY");
      await fs.write(input, "it runs");
      await eventually(async () => expect(await fs.run(["cat", "output"])).toMatchObject({ stdout: "it runs" }));
      expect(await outcome(fs.open("program", "O_WRONLY"))).toBe("ETXTBSY");
      await fs.close(input);
      await running;
      expect(await outcome(fs.open("program", "O_WRONLY"))).toBe("ok");
    });

    test("O_PATH: a descriptor without access still says what it names", async () => {
      const { fs } = m;
      const fd = await fs.open("content", "O_PATH");
      expect(await fs.fstat(fd)).toMatchObject({ type: "file", size: 10_000 });
      expect(await outcome(fs.read(fd, 1))).toBe("EBADF");
      await fs.close(fd);
    });

    test("special files: FIFOs and sockets carry data, device nodes are EPERM", async () => {
      const { fs } = m;
      await fs.mkfifo("pipe");
      expect(await fs.run(["sh", "-c", "echo through >pipe & cat pipe; wait"])).toMatchObject({ stdout: "through\n" });
      await fs.bindSocket("socket");
      expect((await fs.lstat("socket")).type).toBe("socket");
      expect(await fs.converse("socket", "hello")).toBe("hello");
      await fs.closeSocket("socket");
      expect(await outcome(fs.mknod("null", 0o020666, 1, 3))).toBe("EPERM");
      expect(await outcome(fs.mknod("disk", 0o060666, 8, 0))).toBe("EPERM");
      expect(await outcome(fs.mknod("regular", 0o100644, 0, 0))).toBe("ok");
      expect(await fs.lstat("regular")).toMatchObject({ type: "file", size: 0, mode: 0o644 });
    });

    test("symlink: its size is the length of its target, in bytes", async () => {
      const { fs } = m;
      await fs.symlink("é".repeat(10), "accents");
      await fs.symlink("t".repeat(4000), "long-link");
      expect((await fs.lstat("pointer")).size).toBe(32);
      expect((await fs.lstat("accents")).size).toBe(20);
      expect((await fs.lstat("long-link")).size).toBe(4000);
      expect(await fs.readlink("long-link")).toBe("t".repeat(4000));
    });

    test("times: write and truncate move mtime, chmod only ctime, and nanoseconds are kept", async () => {
      const { fs } = m;
      const old = "1000000000000000000";
      const startNs = BigInt(Date.now()) * 1_000_000n - SECOND;
      await append(fs, "write-times", "!");
      expect(BigInt((await fs.lstat("write-times")).mtime)).toBeGreaterThan(startNs);
      const fd = await fs.open("truncate-times", "O_WRONLY|O_TRUNC");
      await fs.close(fd);
      expect(BigInt((await fs.lstat("truncate-times")).mtime)).toBeGreaterThan(startNs);
      await fs.chmod("chmod-times", 0o600);
      const changed = await fs.lstat("chmod-times");
      expect(changed.mtime).toBe(old);
      expect(BigInt(changed.ctime)).toBeGreaterThan(startNs);
      await fs.utimens("chmod-times", "1234567890987654321", "1000000000000000007");
      expect(await fs.lstat("chmod-times")).toMatchObject({
        atime: "1234567890987654321",
        mtime: "1000000000000000007",
      });
    });

    test("times: of a symbolic link itself can be set, and its target keeps its own", async () => {
      const { fs } = m;
      await write(fs, "link-target", "");
      await fs.utimens("link-target", "1000000000000000001", "1000000000000000001");
      await fs.symlink("link-target", "timed-link");
      await fs.utimens("timed-link", "1100000000000000001", "1100000000000000002", false);
      expect((await fs.lstat("timed-link")).mtime).toBe("1100000000000000002");
      expect((await fs.stat("timed-link")).mtime).toBe("1000000000000000001");
    });

    test("interrupts: signals that interrupt a client's calls change no result", async () => {
      const { fs } = m;
      const script = `
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for n in range(300):
    with open("interrupted", "wb") as f: f.write(b"x" * n)
    assert os.stat("interrupted").st_size == n, n
    os.rename("interrupted", "interrupted2")
    assert os.listdir(".").count("interrupted2") == 1
    os.unlink("interrupted2")
signal.setitimer(signal.ITIMER_REAL, 0)
print("done")`;
      expect(await fs.run(["python3", "-c", script])).toMatchObject({ code: 0, stdout: "done\n", stderr: "" });
    });

    test("request header: a descriptor is judged when it is opened, not when it is used", async () => {
      const owner: Caller = await m.another(0, 0);
      await write(owner, "secret", "kept by root", 0o600);
      const fd = await owner.open("secret", "O_RDWR");
      await owner.become(4321, 4321, []);
      expect(await outcome(owner.open("secret", "O_RDONLY"))).toBe("EACCES");
      expect(await owner.pread(fd, 100, 0)).toBe("kept by root");
      expect(await owner.pwrite(fd, "KEPT", 0)).toBe(4);
      expect(await read(m.fs, "secret")).toBe("KEPT by root");
    });
  },
);
