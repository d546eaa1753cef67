import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PathTraversalError, WorkspaceError, type WorkspaceErrorCode } from "../../src/errors.ts";
import type { Workspace } from "../../src/workspace/workspace.ts";

interface WorkspaceSubject {
  readonly workspace: Workspace;
  /** The same with small limits: 1,000 bytes a file, 5 entries a listing. */
  readonly small: Workspace;
  /** Where its files come from: what is put there from outside is seen. */
  readonly directory: string;
  /** Where its files are now. */
  readonly mode: (path: string) => Promise<number>;
  readonly close: () => Promise<void>;
}

/** What every workspace promises. */
export function describeWorkspace(name: string, open: () => Promise<WorkspaceSubject>): void {
  describe(`${name}: what every workspace promises`, () => {
    let subject: WorkspaceSubject;
    let workspace: Workspace;
    let round = 0;
    /** Each test has a directory of its own. */
    let here = "";
    beforeAll(async () => {
      subject = await open();
      workspace = subject.workspace;
    });
    afterAll(async () => await subject?.close());
    beforeEach(() => {
      round += 1;
      here = `round-${round}`;
      mkdirSync(join(subject.directory, here));
    });

    /** Puts a file there from outside. */
    const put = (path: string, content: string): void => {
      mkdirSync(dirname(join(subject.directory, here, path)), { recursive: true });
      writeFileSync(join(subject.directory, here, path), content);
    };
    const link = (target: string, path: string): void => symlinkSync(target, join(subject.directory, here, path));

    test("what is written can be read", async () => {
      await workspace.writeFile(`${here}/a.txt`, "Grüße 🦀\n");
      expect(await workspace.readFile(`${here}/a.txt`)).toBe("Grüße 🦀\n");
      await workspace.writeFile(`${here}/a.bin`, Uint8Array.of(0, 255, 10));
      expect(await workspace.readFileBytes(`${here}/a.bin`)).toEqual(Uint8Array.of(0, 255, 10));
    });

    test("a byte order mark stays, and what is no text is replaced", async () => {
      await workspace.writeFile(`${here}/bom.txt`, Uint8Array.of(0xef, 0xbb, 0xbf, 0x61, 0xff));
      expect(await workspace.readFile(`${here}/bom.txt`)).toBe("\ufeffa\ufffd");
    });

    test("directories on the way are made", async () => {
      await workspace.writeFile(`${here}/one/two/three.txt`, "deep");
      expect(await workspace.readFile(`${here}/one/two/three.txt`)).toBe("deep");
    });

    test("paths may be written in several ways", async () => {
      await workspace.writeFile(`./${here}//a.txt`, "same");
      expect(await workspace.readFile(`${here}/./a.txt`)).toBe("same");
      expect(await workspace.stat(`./${here}/`)).toMatchObject({ path: here, kind: "directory" });
    });

    test("a file keeps its permissions, but for those that lend the rights of its owner", async () => {
      put("script.sh", "old");
      chmodSync(join(subject.directory, here, "script.sh"), 0o4750);
      await workspace.writeFile(`${here}/script.sh`, "new");
      expect(await subject.mode(`${here}/script.sh`)).toBe(0o750);
      expect(await workspace.readFile(`${here}/script.sh`)).toBe("new");
    });

    test("stat tells what is there", async () => {
      put("a.txt", "12345");
      link("a.txt", "link");
      const stat = await workspace.stat(`${here}/a.txt`);
      expect(stat).toEqual({ path: `${here}/a.txt`, kind: "file", size: 5, modifiedAt: expect.any(Date) });
      expect(Math.abs(stat.modifiedAt.getTime() - Date.now())).toBeLessThan(60_000);
      expect(await workspace.stat(`${here}/link`)).toMatchObject({ kind: "symlink", size: 0 });
      expect(await workspace.stat("")).toMatchObject({ path: "", kind: "directory", size: 0 });
    });

    test("a list is sorted, and goes as deep as it is asked to", async () => {
      for (const path of ["b.txt", "a/z.txt", "a/b/c.txt", "a.txt"]) put(path, path);
      link("a", "link");
      const paths = async (recursive: boolean): Promise<string[]> =>
        (await workspace.list(here, { recursive })).map(({ kind, path }) => `${kind} ${path.slice(here.length + 1)}`);
      expect(await paths(false)).toEqual(["directory a", "file a.txt", "file b.txt", "symlink link"]);
      expect(await paths(true)).toEqual([
        "directory a",
        "file a.txt",
        "directory a/b",
        "file a/b/c.txt",
        "file a/z.txt",
        "file b.txt",
        "symlink link",
      ]);
      expect((await workspace.list()).map(({ path }) => path)).toContain(here);
    });

    test("a file is deleted; a directory if it is empty, or with all that is in it", async () => {
      for (const path of ["file", "full/a/b/c", "empty/x"]) put(path, "");
      await workspace.delete(`${here}/file`);
      await workspace.delete(`${here}/empty/x`);
      await workspace.delete(`${here}/empty`);
      expect(await failing(workspace.delete(`${here}/full`))).toBe("NOT_EMPTY");
      await workspace.delete(`${here}/full`, { recursive: true });
      expect(await workspace.list(here)).toEqual([]);
    });

    test("the workspace itself is not deleted", async () => {
      expect(await failing(workspace.delete("", { recursive: true }))).toBe("NOT_PERMITTED");
      expect(await failing(workspace.delete("./", { recursive: true }))).toBe("NOT_PERMITTED");
    });

    test("what is not there is told", async () => {
      for (const path of ["nothing", "nothing/below"].map((each) => `${here}/${each}`)) {
        expect(await failing(workspace.readFile(path))).toBe("NOT_FOUND");
        expect(await failing(workspace.stat(path))).toBe("NOT_FOUND");
        expect(await failing(workspace.list(path))).toBe("NOT_FOUND");
        expect(await failing(workspace.delete(path))).toBe("NOT_FOUND");
      }
    });

    test("what is of another kind is left as it is", async () => {
      put("directory/file", "kept");
      execFileSync("mkfifo", [join(subject.directory, here, "fifo")]);
      const at = (path: string): string => `${here}/${path}`;
      expect(await failing(workspace.readFile(at("directory")))).toBe("WRONG_KIND");
      expect(await failing(workspace.readFile(""))).toBe("WRONG_KIND");
      expect(await failing(workspace.writeFile(at("directory"), "x"))).toBe("WRONG_KIND");
      expect(await failing(workspace.writeFile("", "x"))).toBe("WRONG_KIND");
      expect(await failing(workspace.writeFile(at("directory/file/below"), "x"))).toBe("WRONG_KIND");
      expect(await failing(workspace.readFile(at("directory/file/below")))).toBe("WRONG_KIND");
      expect(await failing(workspace.list(at("directory/file")))).toBe("WRONG_KIND");
      expect(await failing(workspace.readFile(at("fifo")))).toBe("WRONG_KIND");
      expect(await failing(workspace.writeFile(at("fifo"), "x"))).toBe("WRONG_KIND");
      expect(await workspace.readFile(at("directory/file"))).toBe("kept");
    });

    const HOSTILE: Readonly<Record<string, string>> = {
      "an absolute path": "/etc/passwd",
      "a path with two slashes in front": "//etc/passwd",
      "the directory above": "..",
      "a path that leads up": "../outside",
      "a path that leads up in the end": "a/../../outside",
      "a path that leads up and stays inside": "a/..",
      "a path that leads up after a dot": "./../outside",
      "a NUL": "a\0b",
      "half of a character": "\ud800",
      "a name that is too long": `a/${"x".repeat(256)}`,
      "a name of too many bytes": "ä".repeat(128),
      "a path that is too long": "dir/".repeat(1100),
    };
    test.each(Object.entries(HOSTILE))("%s is refused, whatever is to be done there", async (_, path) => {
      const attempts = [
        workspace.readFile(path),
        workspace.readFileBytes(path),
        workspace.writeFile(path, "x"),
        workspace.list(path),
        workspace.delete(path, { recursive: true }),
        workspace.stat(path),
      ];
      for (const attempt of attempts) expect(await failing(attempt)).toBe("PathTraversalError");
    });

    test("a path that is no string is refused", async () => {
      for (const path of [undefined, null, 7, ["a"], { toString: () => "a" }] as unknown as string[]) {
        expect(await failing(workspace.readFile(path))).toBe("PathTraversalError");
      }
    });

    test("links that stay inside are followed", async () => {
      put("real/file.txt", "content");
      put("real/deeper/file.txt", "deeper");
      link("real", "directory");
      link("directory/file.txt", "file");
      link("../real/./deeper/../file.txt", "real/around");
      link("deeper", "real/sub");
      for (const path of ["directory/file.txt", "file", "real/around", "directory/around"]) {
        expect(await workspace.readFile(`${here}/${path}`)).toBe("content");
      }
      expect(await workspace.readFile(`${here}/directory/sub/file.txt`)).toBe("deeper");
      expect((await workspace.list(`${here}/directory`)).map(({ path }) => path.slice(here.length + 1))).toEqual([
        "directory/around",
        "directory/deeper",
        "directory/file.txt",
        "directory/sub",
      ]);
    });

    test("writing through a link that stays inside writes what it leads to", async () => {
      put("real/file.txt", "old");
      link("real/file.txt", "file");
      await workspace.writeFile(`${here}/file`, "new");
      expect(await workspace.readFile(`${here}/real/file.txt`)).toBe("new");
      expect(await workspace.stat(`${here}/file`)).toMatchObject({ kind: "symlink" });
    });

    test("deleting a link deletes the link", async () => {
      put("real/file.txt", "kept");
      link("real", "directory");
      link("real/file.txt", "file");
      link("/etc", "outside");
      for (const path of ["directory", "file", "outside"])
        await workspace.delete(`${here}/${path}`, { recursive: true });
      expect(await workspace.readFile(`${here}/real/file.txt`)).toBe("kept");
      expect((await workspace.list(here)).map(({ path }) => path)).toEqual([`${here}/real`]);
      expect(statSync("/etc/passwd").isFile()).toBe(true);
    });

    test("links that lead outside are refused, at the end and on the way", async () => {
      link("/etc", "absolute");
      link("../../../../../../../../etc", "climbing");
      link("absolute", "twice");
      link("/etc/passwd", "file");
      link(`${subject.directory}/${here}`, "absolute-inside");
      const paths = ["absolute/passwd", "climbing/passwd", "twice/passwd", "file", "absolute-inside/x"];
      for (const path of paths.map((each) => `${here}/${each}`)) {
        expect(await failing(workspace.readFile(path))).toBe("PathTraversalError");
        expect(await failing(workspace.writeFile(path, "x"))).toBe("PathTraversalError");
      }
      for (const path of ["absolute", "climbing", "twice"].map((each) => `${here}/${each}`)) {
        expect(await failing(workspace.list(path))).toBe("PathTraversalError");
        expect(await failing(workspace.stat(`${path}/passwd`))).toBe("PathTraversalError");
        expect(await failing(workspace.delete(`${path}/passwd`))).toBe("PathTraversalError");
      }
    });

    test("links that go in circles end", async () => {
      link("other", "one");
      link("one", "other");
      link(".", "self");
      expect(await failing(workspace.readFile(`${here}/one`))).toBe("WRONG_KIND");
      expect(await failing(workspace.writeFile(`${here}/one/x`, "x"))).toBe("WRONG_KIND");
      expect((await workspace.list(`${here}/self/self`)).length).toBe(3);
      expect((await workspace.list(here, { recursive: true })).length).toBe(3);
    });

    test("a file that is too large is neither read nor written", async () => {
      put("large", "x".repeat(1001));
      put("fits", "x".repeat(1000));
      expect(await failing(subject.small.readFile(`${here}/large`))).toBe("TOO_LARGE");
      expect(await failing(subject.small.writeFile(`${here}/new`, "x".repeat(1001)))).toBe("TOO_LARGE");
      expect(await failing(workspace.stat(`${here}/new`))).toBe("NOT_FOUND");
      expect((await subject.small.readFile(`${here}/fits`)).length).toBe(1000);
      await subject.small.writeFile(`${here}/new`, "é".repeat(500));
    });

    test("a list that is too long is refused", async () => {
      for (const name of ["1", "2", "3", "4", "deep/5"]) put(name, "");
      expect((await subject.small.list(here)).length).toBe(5);
      expect(await failing(subject.small.list(here, { recursive: true }))).toBe("TOO_LARGE");
    });

    test("a reader sees the old content or the new one, and no temporary file stays", async () => {
      const contents = ["a", "b"].map((letter) => letter.repeat(300_000));
      await workspace.writeFile(`${here}/file`, contents[0]!);
      let isWriting = true;
      const writing = (async () => {
        for (let n = 1; n <= 30; n += 1) await workspace.writeFile(`${here}/file`, contents[n % 2]!);
        isWriting = false;
      })();
      let reads = 0;
      for (; isWriting || reads < 5; reads += 1) {
        const seen = await workspace.readFile(`${here}/file`);
        expect(seen === contents[0] || seen === contents[1]).toBe(true);
      }
      await writing;
      expect((await workspace.list(here)).map(({ path }) => path)).toEqual([`${here}/file`]);
    });

    test("many at once do not mix", async () => {
      const numbers = Array.from({ length: 40 }, (_, index) => index);
      await Promise.all(numbers.map((n) => workspace.writeFile(`${here}/made/by/${n % 5}/${n}`, `content ${n}`)));
      const read = await Promise.all(numbers.map((n) => workspace.readFile(`${here}/made/by/${n % 5}/${n}`)));
      expect(read).toEqual(numbers.map((n) => `content ${n}`));
    });

    test("messages tell the path, and never where the workspace is", async () => {
      link("/etc", "outside");
      for (const path of ["nothing", "outside/passwd"].map((each) => `${here}/${each}`)) {
        const error = await workspace.readFile(path).catch((thrown: unknown) => thrown as Error);
        expect(String(error)).toContain(path);
        expect(String(error)).not.toContain(subject.directory);
        expect(String(error)).not.toContain("/proc/");
      }
    });
  });
}

/** How it fails: the code of a WorkspaceError, else the name of the error. */
export async function failing(attempt: Promise<unknown>): Promise<WorkspaceErrorCode | string> {
  try {
    await attempt;
    return "nothing failed";
  } catch (error) {
    if (error instanceof PathTraversalError) return error.name;
    if (error instanceof WorkspaceError) return error.code;
    throw error;
  }
}
