import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileWorld } from "./support.ts";

describe("read_file", () => {
  test("gives a file as it is, and says when it is empty", async () => {
    const { directory, done } = await fileWorld();
    await writeFile(join(directory, "a.txt"), "one\ntwo\r\nthree");
    await writeFile(join(directory, "empty"), "");
    expect(await done("read_file", { path: "a.txt" })).toBe("one\ntwo\r\nthree");
    expect(await done("read_file", { path: "/workspace/a.txt" })).toBe("one\ntwo\r\nthree");
    expect(await done("read_file", { path: "empty" })).toBe("(empty file)");
  });

  test("gives some lines, and says where to read on", async () => {
    const { directory, done, refused } = await fileWorld();
    await writeFile(join(directory, "lines"), "1\n2\n3\n4\n5\n");
    expect(await done("read_file", { path: "lines", offset: 2, limit: 2 })).toBe(
      "2\n3\n[more lines: read on with offset 4]",
    );
    expect(await done("read_file", { path: "lines", offset: 4, limit: 2 })).toBe("4\n5\n");
    expect(await done("read_file", { path: "lines", offset: 5, limit: null })).toBe("5\n");
    expect(await refused("read_file", { path: "lines", offset: 6 })).toBe("lines has only 5 lines");
  });

  test("keeps no more than fits: whole lines, or the beginning of one that is too long", async () => {
    const { directory, done } = await fileWorld({ maxOutput: 10 });
    await writeFile(join(directory, "lines"), "1234\n5678\n90\n");
    await writeFile(join(directory, "long"), `${"x".repeat(9)}😀${"y".repeat(90)}\nend\n`);
    expect(await done("read_file", { path: "lines" })).toBe("1234\n5678\n[more lines: read on with offset 3]");
    expect(await done("read_file", { path: "long" })).toBe(`${"x".repeat(9)}\n[line 1 is cut: it is too long]`);
    expect(await done("read_file", { path: "long", offset: 2 })).toBe("end\n");
  });

  test("refuses what is no text", async () => {
    const { directory, refused } = await fileWorld();
    await writeFile(join(directory, "binary"), "a\0b");
    expect(await refused("read_file", { path: "binary" })).toBe("this is no text file");
    expect(await refused("read_file", { path: "." })).toContain("is no file");
  });
});

describe("write_file and edit_file", () => {
  test("write makes the directories on the way, and replaces what is there", async () => {
    const { directory, done } = await fileWorld();
    expect(await done("write_file", { path: "a/b/c.txt", content: "first" })).toBe("wrote a/b/c.txt");
    await done("write_file", { path: "a/b/c.txt", content: "second" });
    expect(await readFile(join(directory, "a/b/c.txt"), "utf8")).toBe("second");
  });

  test("edit replaces the only such place, exactly", async () => {
    const { directory, done } = await fileWorld();
    await writeFile(join(directory, "a.txt"), "$& one one? two\n");
    expect(await done("edit_file", { path: "a.txt", old_text: "one?", new_text: "$& $1" })).toBe("edited a.txt");
    expect(await readFile(join(directory, "a.txt"), "utf8")).toBe("$& one $& $1 two\n");
  });

  test("edit refuses text that is not there or is there twice, unless all are meant", async () => {
    const { directory, done, refused } = await fileWorld();
    await writeFile(join(directory, "a.txt"), "a a a\n");
    expect(await refused("edit_file", { path: "a.txt", old_text: "b", new_text: "" })).toContain("is not in a.txt");
    expect(await refused("edit_file", { path: "a.txt", old_text: "a", new_text: "" })).toContain("3 times");
    expect(await refused("edit_file", { path: "a.txt", old_text: "", new_text: "" })).toContain("old_text");
    expect(await done("edit_file", { path: "a.txt", old_text: "a", new_text: "b", replace_all: true })).toBe(
      "edited a.txt in 3 places",
    );
    expect(await readFile(join(directory, "a.txt"), "utf8")).toBe("b b b\n");
  });

  test("edit leaves what is not UTF-8 alone", async () => {
    const { directory, refused } = await fileWorld();
    const bytes = Buffer.from([0x61, 0xff, 0x62]);
    await writeFile(join(directory, "latin"), bytes);
    expect(await refused("edit_file", { path: "latin", old_text: "a", new_text: "b" })).toBe("latin is no UTF-8 text");
    expect(await readFile(join(directory, "latin"))).toEqual(bytes);
  });

  test("an edit that would grow without bound is refused before it is made", async () => {
    const { directory, refused } = await fileWorld();
    await writeFile(join(directory, "a.txt"), "a".repeat(100_000));
    const input = { path: "a.txt", old_text: "a", new_text: "b".repeat(100_000), replace_all: true };
    expect(await refused("edit_file", input)).toBe("a.txt would become too large");
  });

  test("edits side by side do not lose one another", async () => {
    const { directory, done } = await fileWorld();
    const numbers = Array.from({ length: 20 }, (_, at) => at);
    await writeFile(join(directory, "a.txt"), numbers.map((at) => `<${at}>`).join(""));
    await Promise.all(
      numbers.map((at) => done("edit_file", { path: "a.txt", old_text: `<${at}>`, new_text: `[${at}]` })),
    );
    expect(await readFile(join(directory, "a.txt"), "utf8")).toBe(numbers.map((at) => `[${at}]`).join(""));
  });
});

describe("list_files", () => {
  test("lists a directory, or all below", async () => {
    const { directory, done } = await fileWorld();
    await mkdir(join(directory, "src/deep"), { recursive: true });
    await writeFile(join(directory, "src/deep/a.ts"), "");
    await symlink("src", join(directory, "link"));
    expect(await done("list_files", {})).toBe("link@\nsrc/");
    expect(await done("list_files", { path: "src", recursive: true })).toBe("src/deep/\nsrc/deep/a.ts");
    expect(await done("list_files", { path: "src/deep/", recursive: null })).toBe("src/deep/a.ts");
    await mkdir(join(directory, "none"));
    expect(await done("list_files", { path: "/workspace/none" })).toBe("(nothing)");
  });

  test("says what is left out of a long list", async () => {
    const { directory, done } = await fileWorld({ maxOutput: 9 });
    for (const name of ["aaa", "bbb", "ccc"]) await writeFile(join(directory, name), "");
    expect(await done("list_files", {})).toBe("aaa\nbbb\n[1 more left out: list a directory below]");
  });
});

describe("search", () => {
  const REMARK = "[this was searched for as plain text]";

  test("finds plain text in the files of a directory of this machine, and in nothing else", async () => {
    const { directory, done } = await fileWorld();
    await mkdir(join(directory, "src/.git"), { recursive: true });
    await writeFile(join(directory, "src/a.ts"), "x\na.b here\n");
    await writeFile(join(directory, "src/.git/a"), "a.b\n");
    await writeFile(join(directory, "binary"), "a.b\0\n");
    await writeFile(join(directory, "other"), "aXb\n");
    expect(await done("search", { pattern: "a.b" })).toBe(`src/a.ts:2:a.b here\n${REMARK}`);
    expect(await done("search", { pattern: "a.b", path: "src/a.ts" })).toBe(`src/a.ts:2:a.b here\n${REMARK}`);
    expect(await done("search", { pattern: "nowhere" })).toBe(`(no matches)\n${REMARK}`);
  });

  test("a pattern made to take long is only text", async () => {
    const { directory, done } = await fileWorld();
    await writeFile(join(directory, "a"), `${"a".repeat(5000)}!\n`);
    expect(await done("search", { pattern: "(a+)+$" })).toBe(`(no matches)\n${REMARK}`);
  });

  test("gives as many as were asked for, each shortened, and says that there may be more", async () => {
    const { directory, done } = await fileWorld();
    await writeFile(join(directory, "a"), `${`needle${"y".repeat(600)}\n`.repeat(3)}`);
    const lines = (await done("search", { pattern: "needle", max_results: 2 })).split("\n");
    expect(lines.map((line) => line.length)).toEqual([505, 505, expect.any(Number), REMARK.length]);
    expect(lines[2]).toBe("[there may be more: the search was cut short]");
  });

  test("does not follow links out of the workspace", async () => {
    const outside = await fileWorld();
    await writeFile(join(outside.directory, "secret"), "needle\n");
    const { directory, done, refused } = await fileWorld();
    await symlink(outside.directory, join(directory, "link"));
    await symlink(join(outside.directory, "secret"), join(directory, "file"));
    expect(await done("search", { pattern: "needle" })).toBe(`(no matches)\n${REMARK}`);
    for (const path of ["link", "link/secret", "file"]) await refused("search", { pattern: "needle", path });
  });
});

describe("paths that are none of the workspace's", () => {
  const WRONG = [
    "/etc/passwd",
    "../x",
    "a/../../x",
    "/workspace/../etc/passwd",
    "/workspace//etc/passwd",
    "a\0b",
    "link/passwd",
  ];

  test.each(WRONG)("%j is refused by every tool, and nothing is written", async (path) => {
    const { directory, refused } = await fileWorld();
    await symlink("/etc", join(directory, "link"));
    await refused("read_file", { path });
    await refused("write_file", { path, content: "x" });
    await refused("edit_file", { path, old_text: "root", new_text: "x" });
    await refused("list_files", { path });
    await refused("search", { pattern: "root", path });
  });
});
