import { execFileSync } from "node:child_process";
import { lstatSync } from "node:fs";
import { getPreset } from "@agentfense/permission";
import { protectPolicyFile } from "@agentfense/sdk/project";
import { describe, expect, test } from "vitest";
import { file } from "../../support/tree.ts";
import { openWorkspace } from "../../support/workspace.ts";
import { type Caller, outcome, startCaller } from "./caller.ts";
import { append, describeMounted, EVERYTHING_WRITABLE, read, write } from "./mounted.ts";

const [ANNA, BEN, TEAM] = [5001, 5002, 6000];

/** As the command line mounts it. */
const FULL_ACCESS = protectPolicyFile(getPreset("full-access"));

describeMounted("a mount with the preset full-access", { rules: FULL_ACCESS }, (m) => {
  test("opening a FIFO needs the bits that apply to the caller, although the kernel tells nobody that it is opened", async () => {
    const { fs } = m;
    await fs.mkdir("common");
    await fs.chmod("common", 0o777);
    const [anna, ben] = [await m.another(ANNA), await m.another(BEN)];
    await anna.mkfifo("common/fifo");
    const opened: Record<string, unknown> = {};
    for (const mode of [0o600, 0o604, 0o602, 0o606, 0o066]) {
      await anna.chmod("common/fifo", mode);
      const tries: unknown[] = [];
      for (const who of [anna, ben])
        for (const flags of ["O_RDONLY|O_NONBLOCK", "O_WRONLY|O_NONBLOCK", "O_RDWR"])
          tries.push(await outcome(who.open("common/fifo", flags)));
      opened[mode.toString(8)] = tries.map((each) => (each === "ENXIO" ? "ok" : each)); // nobody reads it
    }
    expect(opened).toEqual({
      600: ["ok", "ok", "ok", "EACCES", "EACCES", "EACCES"],
      604: ["ok", "ok", "ok", "ok", "EACCES", "EACCES"],
      602: ["ok", "ok", "ok", "EACCES", "ok", "EACCES"],
      606: ["ok", "ok", "ok", "ok", "ok", "ok"],
      66: ["EACCES", "EACCES", "EACCES", "ok", "ok", "ok"],
    });
  });
});

/** Callers that are not root on root's mount: the daemon, not the kernel, has to look at the mode bits. */
describeMounted(
  "ownership and mode bits",
  {
    lower: {
      "mode-600": file({ content: "600", mode: 0o600 }),
      "mode-644": file({ content: "644", mode: 0o644 }),
      "mode-666": file({ content: "666", mode: 0o666 }),
      "mode-640": file({ content: "640", mode: 0o640 }),
      "mode-700": file({ content: "#!/bin/sh\necho ran\n", mode: 0o700 }),
      closed: { file: "behind a closed door" },
      readable: { file: "content" },
    },
    // Where the rules let everything be written, the kernel looks at them too.
    rules: [...EVERYTHING_WRITABLE, { pattern: "/hidden/**", permission: "none" }],
  },
  (m) => {
    let users: Promise<{ anna: Caller; ben: Caller }> | undefined;
    const both = () => (users ??= started());
    const started = async () => {
      const { fs } = m;
      await fs.chmod("closed", 0o700);
      await fs.chown("mode-640", 0, TEAM);
      await fs.mkdir("common");
      await fs.chmod("common", 0o777);
      await fs.mkdir("sticky");
      await fs.chmod("sticky", 0o1777);
      return { anna: await m.another(ANNA, ANNA, [TEAM]), ben: await m.another(BEN, BEN) };
    };

    test("reading needs the r bit that applies to the caller", async () => {
      const { anna, ben } = await both();
      expect(await outcome(ben.open("mode-600", "O_RDONLY"))).toBe("EACCES");
      expect(await read(ben, "mode-644")).toBe("644");
      expect(await outcome(ben.open("mode-640", "O_RDONLY"))).toBe("EACCES");
      expect(await read(m.fs, "mode-600")).toBe("600");
      expect(await outcome(anna.open("mode-600", "O_RDONLY"))).toBe("EACCES");
    });

    test("supplementary groups count", async () => {
      const { anna } = await both();
      expect(await read(anna, "mode-640")).toBe("640");
      expect(await outcome(anna.open("mode-640", "O_WRONLY"))).toBe("EACCES");
    });

    test("writing, truncating and O_TRUNC need the w bit", async () => {
      const { ben } = await both();
      expect(await outcome(ben.open("mode-644", "O_WRONLY"))).toBe("EACCES");
      expect(await outcome(ben.open("mode-644", "O_RDONLY|O_TRUNC"))).toBe("EACCES");
      expect(await outcome(ben.truncate("mode-644", 0))).toBe("EACCES");
      expect(await outcome(ben.setxattr("mode-644", "user.a", "1"))).toBe("EACCES");
      expect(await read(ben, "mode-644")).toBe("644");
    });

    test("a codebase file that others may write keeps its owner when somebody else writes it", async () => {
      const { ben } = await both();
      await append(ben, "mode-666", "+ben");
      expect(await m.fs.lstat("mode-666")).toMatchObject({ uid: 0, gid: 0, mode: 0o666 });
      expect(await read(m.fs, "mode-666")).toBe("666+ben");
    });

    test("running needs the x bit", async () => {
      const { ben } = await both();
      expect(await outcome(ben.run(["./mode-700"]))).toBe("EACCES");
      expect(await m.fs.run(["./mode-700"])).toMatchObject({ stdout: "ran\n" });
    });

    test("the owner's bits decide for the owner, also when others may do more", async () => {
      const { anna, ben } = await both();
      await write(anna, "common/anna", "anna's");
      await anna.chmod("common/anna", 0o066);
      expect(await outcome(anna.open("common/anna", "O_RDONLY"))).toBe("EACCES");
      expect(await read(ben, "common/anna")).toBe("anna's");
    });

    test("passing through a directory needs its x bit, listing it the r bit", async () => {
      const { ben } = await both();
      expect(await outcome(ben.lstat("closed/file"))).toBe("EACCES");
      expect(await outcome(ben.listdir("closed"))).toBe("EACCES");
      expect(await outcome(ben.chdir("closed"))).toBe("EACCES");
      await m.fs.chmod("closed", 0o711);
      expect(await outcome(ben.listdir("closed"))).toBe("EACCES");
      expect(await read(ben, "closed/file")).toBe("behind a closed door");
      await m.fs.chmod("closed", 0o744);
      expect(await ben.listdir("closed")).toEqual(["file"]);
      expect(await outcome(ben.lstat("closed/file"))).toBe("EACCES");
    });

    test("creating, removing and renaming need w and x on the directory", async () => {
      const { ben } = await both();
      expect(await outcome(ben.open("readable/new", "O_WRONLY|O_CREAT"))).toBe("EACCES");
      expect(await outcome(ben.mkdir("readable/new"))).toBe("EACCES");
      expect(await outcome(ben.symlink("x", "readable/new"))).toBe("EACCES");
      expect(await outcome(ben.mkfifo("readable/new"))).toBe("EACCES");
      expect(await outcome(ben.unlink("readable/file"))).toBe("EACCES");
      expect(await outcome(ben.rename("readable/file", "common/file"))).toBe("EACCES");
      await write(ben, "common/bens", "");
      expect(await outcome(ben.rename("common/bens", "readable/file"))).toBe("EACCES");
      expect(await outcome(ben.link("common/bens", "readable/linked"))).toBe("EACCES");
      expect(await m.fs.listdir("readable")).toEqual(["file"]);
    });

    test("access(2) answers for the caller", async () => {
      const { ben } = await both();
      const [R, W, X] = [4, 2, 1];
      expect(await outcome(ben.access("mode-644", R))).toBe("ok");
      expect(await outcome(ben.access("mode-644", W))).toBe("EACCES");
      expect(await outcome(ben.access("mode-600", R))).toBe("EACCES");
      expect(await outcome(ben.access("mode-700", X))).toBe("EACCES");
      expect(await outcome(ben.access("mode-600", 0))).toBe("ok");
      expect(await outcome(m.fs.access("mode-600", R + W))).toBe("ok");
      expect(await outcome(m.fs.access("mode-600", X))).toBe("EACCES");
    });

    test("only the owner may change mode and explicit times, only root the owner", async () => {
      const { anna, ben } = await both();
      await write(anna, "common/attributes", "", 0o666);
      await anna.chmod("common/attributes", 0o666);
      expect(await outcome(ben.chmod("common/attributes", 0o600))).toBe("EPERM");
      expect(await outcome(ben.utimens("common/attributes", "1000000000000000000", "1000000000000000000"))).toBe(
        "EPERM",
      );
      expect(await outcome(ben.utimens("common/attributes", "now", "now"))).toBe("ok");
      expect(await outcome(ben.utimens("mode-644", "now", "now"))).toBe("EACCES");
      expect(await outcome(ben.chown("common/attributes", BEN, -1))).toBe("EPERM");
      expect(await outcome(anna.chown("common/attributes", BEN, -1))).toBe("EPERM");
      expect(await outcome(anna.chown("common/attributes", -1, TEAM))).toBe("ok");
      expect(await outcome(anna.chown("common/attributes", -1, 4711))).toBe("EPERM");
      expect(await m.fs.lstat("common/attributes")).toMatchObject({ uid: ANNA, gid: TEAM, mode: 0o666 });
    });

    test("in a sticky directory only the owner of an entry, of the directory, or root may take it away", async () => {
      const { anna, ben } = await both();
      for (const name of ["one", "two", "three"]) await write(anna, `sticky/${name}`, name, 0o666);
      await write(ben, "sticky/bens", "");
      expect(await outcome(ben.unlink("sticky/one"))).toBe("EPERM");
      expect(await outcome(ben.rename("sticky/one", "sticky/stolen"))).toBe("EPERM");
      expect(await outcome(ben.rename("sticky/bens", "sticky/one"))).toBe("EPERM");
      await anna.mkdir("sticky/directory");
      expect(await outcome(ben.rmdir("sticky/directory"))).toBe("EPERM");
      await anna.unlink("sticky/one");
      await m.fs.unlink("sticky/two");
      await anna.rename("sticky/three", "sticky/four");
      expect(await m.fs.listdir("sticky")).toEqual(["bens", "directory", "four"]);
    });

    test("a file made without write permission can still be written by who made it", async () => {
      const { anna } = await both();
      const fd = await anna.open("common/sealed", "O_RDWR|O_CREAT|O_EXCL", 0o400);
      expect(await anna.write(fd, "first and last")).toBe(14);
      await anna.close(fd);
      expect(await outcome(anna.open("common/sealed", "O_WRONLY"))).toBe("EACCES");
      expect(await read(anna, "common/sealed")).toBe("first and last");
    });

    test("names renamed over and hard links keep the owner of their file", async () => {
      const { anna } = await both();
      await write(anna, "common/hers", "hers", 0o644);
      await m.fs.link("common/hers", "linked");
      expect(await m.fs.lstat("linked")).toMatchObject({ uid: ANNA, nlink: 2 });
      await m.fs.rename("linked", "common/moved");
      expect(await m.fs.lstat("common/moved")).toMatchObject({ uid: ANNA });
    });
  },
);

describe("ownership of the codebase", () => {
  test("copy-up keeps owner, mode, times and attributes", async () => {
    await using workspace = await openWorkspace({
      lower: { file: "content", directory: { file: "content" } },
      rules: EVERYTHING_WRITABLE,
    });
    workspace.onHost((lower) => {
      const script = `
import os
for path in ("file", "directory"):
    os.chown(path, 1001, 1002); os.chmod(path, 0o751); os.setxattr(path, "user.note", b"n" * 300)
    os.utime(path, ns=(1000000000000000001, 1000000000000000001))`;
      execFileSync("python3", ["-c", script], { cwd: lower });
    });
    await workspace.remount();
    await using fs = await startCaller();
    const at = (path: string) => `${workspace.mountPoint}/${path}`;
    const kept = { uid: 1001, gid: 1002, mode: 0o751, mtime: "1000000000000000001" };
    // The tests themselves have read the file since, which moved its time of access.
    const atime = String(lstatSync(`${workspace.lower}/file`, { bigint: true }).atimeNs);
    await fs.setxattr(at("file"), "user.more", "1");
    await append(fs, at("directory/file"), "!");
    expect(await fs.lstat(at("file"))).toMatchObject({ ...kept, atime });
    expect(await fs.lstat(at("directory"))).toMatchObject(kept);
    expect(await fs.getxattr(at("file"), "user.note")).toBe("n".repeat(300));
    expect(await fs.getxattr(at("directory"), "user.note")).toBe("n".repeat(300));
  });

  test("with an owner given, every entry shows as that owner's", async () => {
    await using workspace = await openWorkspace({
      lower: { file: file({ content: "content", mode: 0o600 }), directory: {} },
      owner: { uid: ANNA, gid: TEAM },
      rules: EVERYTHING_WRITABLE,
    });
    await using anna = await startCaller({ uid: ANNA, gid: TEAM });
    await anna.chdir(workspace.mountPoint);
    expect(await read(anna, "file")).toBe("content");
    await append(anna, "file", "!");
    await write(anna, "directory/new", "");
    for (const path of [".", "file", "directory", "directory/new"]) {
      expect(await anna.lstat(path), path).toMatchObject({ uid: ANNA, gid: TEAM });
    }
    await anna.chdir("/");
  });
});
