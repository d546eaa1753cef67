import { expect, test } from "vitest";
import { type Caller, outcome } from "./caller.ts";
import { append, describeMountedByAnyone } from "./mounted.ts";

/** Large enough that no sensible server copies it while everybody else waits. */
const SIZE = 6 * 1024 * 1024;
const CONTENT = new Uint8Array(SIZE).fill(120);

/** Every call that makes a codebase file the sandbox's own. */
const FIRST_CHANGES: Record<string, (fs: Caller, path: string) => Promise<unknown>> = {
  append: (fs, path) => append(fs, path, "!"),
  truncate: (fs, path) => fs.truncate(path, SIZE - 1),
  chmod: (fs, path) => fs.chmod(path, 0o600),
  utimens: (fs, path) => fs.utimens(path, "omit", "1000000000000000001"),
  setxattr: (fs, path) => fs.setxattr(path, "user.a", "1"),
  link: (fs, path) => fs.link(path, `${path}-linked`),
  rename: (fs, path) => fs.rename(path, `${path}-renamed`),
};

// The length of a name decides about the alignment of a request in memory.
const cases = Object.keys(FIRST_CHANGES).flatMap((name) =>
  [1, 2, 3, 4].map((pad) => ({ name, path: name + "x".repeat(pad) })),
);

describeMountedByAnyone(
  "the first change of a large codebase file",
  {
    lower: {
      ...Object.fromEntries(cases.map(({ path }) => [path, CONTENT])),
      shared: CONTENT,
      slow: CONTENT,
      small: "small",
    },
  },
  (m) => {
    for (const { name, path } of cases) {
      test(`by ${name}, where the file is called ${path}`, async () => {
        const { fs } = m;
        expect(await outcome(FIRST_CHANGES[name]?.(fs, path) ?? Promise.reject())).toBe("ok");
        const after = await fs.lstat(name === "rename" ? `${path}-renamed` : path);
        expect(after.size).toBe(SIZE + ({ append: 1, truncate: -1 }[name] ?? 0));
        expect(after.nlink).toBe(name === "link" ? 2 : 1);
      });
    }

    test("by four processes at once loses nothing of what they write", async () => {
      const writers = await Promise.all([1, 2, 3, 4].map(() => m.another()));
      await Promise.all(writers.map((writer, index) => append(writer, "shared", `<${index}>`)));
      const fd = await m.fs.open("shared", "O_RDONLY");
      const tail = await m.fs.pread(fd, 100, SIZE);
      await m.fs.close(fd);
      expect(tail.match(/<\d>/g)?.sort()).toEqual(["<0>", "<1>", "<2>", "<3>"]);
      expect(tail).toHaveLength(12);
    });

    test("while others have it open for reading: they see what is written", async () => {
      const reader = await m.another();
      const fd = await reader.open("slow", "O_RDONLY");
      expect(await reader.pread(fd, 3, SIZE - 3)).toBe("xxx");
      await append(m.fs, "slow", "end");
      expect(await reader.pread(fd, 6, SIZE - 3)).toBe("xxxend");
      expect((await reader.fstat(fd)).size).toBe(SIZE + 3);
      await reader.close(fd);
    });
  },
);
