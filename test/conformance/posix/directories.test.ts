import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Daemon } from "../../support/daemon-link.ts";
import { rounds } from "../../support/rounds.ts";
import { type Caller, outcome, startCaller } from "./caller.ts";
import { describeMountedByAnyone, EVERYTHING_WRITABLE, listEntries, readEntries, write } from "./mounted.ts";

const names = (count: number, prefix: string) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
const tree = (count: number) => Object.fromEntries(names(count, "entry").map((name) => [name, ""]));

describeMountedByAnyone(
  "directories",
  { lower: { many: tree(2000), shrinking: tree(2000), growing: tree(1000) } },
  (m) => {
    test("a small buffer gives the same entries as a large one", async () => {
      const { fs } = m;
      const [small, large] = [await listEntries(fs, "many", 200), await listEntries(fs, "many", 1 << 20)];
      expect(small.map(({ name }) => name)).toEqual(large.map(({ name }) => name));
      expect(new Set(small.map(({ name }) => name)).size).toBe(2002);
      expect(new Set(small.map(({ offset }) => offset)).size).toBe(2002);
    });

    test("every offset leads back to the entry behind it", async () => {
      const { fs } = m;
      const fd = await fs.open("many", "O_RDONLY|O_DIRECTORY");
      const all = await readEntries(fs, fd);
      for (const at of [0, 1, 2, 77, 500, 1234, 2000]) {
        await fs.lseek(fd, all[at]?.offset ?? 0, "SEEK_SET");
        expect((await fs.getdents(fd, 4096))[0]?.name, `after entry ${at}`).toBe(all[at + 1]?.name);
      }
      await fs.lseek(fd, 0, "SEEK_SET");
      expect((await fs.getdents(fd, 4096))[0]?.name).toBe(".");
      await fs.close(fd);
    });

    test("removing what was read while reading skips nothing and repeats nothing", async () => {
      const { fs } = m;
      const fd = await fs.open("shrinking", "O_RDONLY|O_DIRECTORY");
      const seen: string[] = [];
      for (let part = await fs.getdents(fd, 2048); part.length > 0; part = await fs.getdents(fd, 2048)) {
        for (const { name } of part.filter((entry) => !entry.name.startsWith("."))) {
          seen.push(name);
          await fs.unlink(`shrinking/${name}`);
        }
      }
      await fs.close(fd);
      expect(seen.sort()).toEqual(names(2000, "entry").sort());
      await fs.rmdir("shrinking");
    });

    test("adding while reading neither hides nor repeats what was there", async () => {
      const { fs } = m;
      const fd = await fs.open("growing", "O_RDONLY|O_DIRECTORY");
      const seen: string[] = [];
      let made = 0;
      for (let part = await fs.getdents(fd, 2048); part.length > 0; part = await fs.getdents(fd, 2048)) {
        seen.push(...part.map(({ name }) => name));
        if (made < 100) await write(fs, `growing/aaa${made++}`, "");
      }
      await fs.close(fd);
      const old = seen.filter((name) => name.startsWith("entry")).sort();
      expect(old).toEqual(names(1000, "entry").sort());
      expect(await fs.listdir("growing")).toHaveLength(1000 + made);
    });

    test("a rewound directory shows what was made since", async () => {
      const { fs } = m;
      await fs.mkdir("rewound");
      const fd = await fs.open("rewound", "O_RDONLY|O_DIRECTORY");
      expect((await fs.getdents(fd, 4096)).length).toBe(2);
      await write(fs, "rewound/new", "");
      await fs.lseek(fd, 0, "SEEK_SET");
      expect((await fs.getdents(fd, 4096)).map(({ name }) => name).sort()).toEqual([".", "..", "new"]);
      await fs.close(fd);
    });

    test("entry types are right without a stat", async () => {
      const { fs } = m;
      await fs.mkdir("typed");
      await write(fs, "typed/file", "");
      await fs.mkdir("typed/directory");
      await fs.symlink("x", "typed/symlink");
      await fs.mkfifo("typed/fifo");
      await fs.bindSocket("typed/socket");
      await fs.closeSocket("typed/socket");
      const types = Object.fromEntries((await listEntries(fs, "typed")).map(({ name, type }) => [name, type]));
      expect(types).toEqual({
        ".": "directory",
        "..": "directory",
        file: "file",
        directory: "directory",
        symlink: "symlink",
        fifo: "fifo",
        socket: "socket",
      });
    });
  },
);

/** A hundred thousand when there is time. */
const LARGE = Math.min(100_000, rounds(1) * 5_000);

describe("a codebase directory of very many entries", () => {
  const count = LARGE;
  let base = "";
  let daemon: Daemon | undefined;
  let fs: Caller | undefined;
  const caller = () => fs ?? expect.fail("not mounted");

  // Made outside of the usual workspace, which reads every file of its codebase several times.
  beforeAll(async () => {
    base = mkdtempSync(join(tmpdir(), "agentfense-large-"));
    mkdirSync(join(base, "mnt"));
    const script = `import os\nos.makedirs("lower/large")\nfor n in range(${count}): os.close(os.open(f"lower/large/entry{n}", os.O_CREAT | os.O_WRONLY))`;
    execFileSync("python3", ["-c", script], { cwd: base });
    daemon = Daemon.ofProcess("root");
    const mountPoint = join(base, "mnt");
    await daemon.mount(
      { mountPoint, lowers: [join(base, "lower")], delta: join(base, "delta"), rules: EVERYTHING_WRITABLE },
      () => undefined,
    );
    fs = await startCaller({ timeoutMs: 120_000 });
    await fs.chdir(mountPoint);
  });

  afterAll(async () => {
    await fs?.[Symbol.asyncDispose]();
    if (fs !== undefined) await daemon?.unmount(join(base, "mnt"));
    rmSync(base, { recursive: true, force: true });
  });

  test("is listed whole, each entry once, with offsets that can be returned to", async () => {
    const fd = await caller().open("large", "O_RDONLY|O_DIRECTORY");
    const entries = await readEntries(caller(), fd, 1 << 18);
    expect(new Set(entries.map(({ name }) => name)).size).toBe(count + 2);
    expect(new Set(entries.map(({ ino }) => ino)).size).toBe(count + 2);
    for (const at of [0, count - 1, count / 2, 3]) {
      await caller().lseek(fd, entries[at]?.offset ?? 0, "SEEK_SET");
      expect((await caller().getdents(fd, 4096))[0]?.name).toBe(entries[at + 1]?.name);
    }
    await caller().close(fd);
  });

  test("is removed by rm -rf", async () => {
    expect(await caller().run(["rm", "-rf", "large"])).toMatchObject({ code: 0, stderr: "" });
    expect(await outcome(caller().lstat("large"))).toBe("ENOENT");
    expect(await caller().listdir(".")).toEqual([]);
  });
});
