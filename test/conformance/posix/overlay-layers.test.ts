import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { openWorkspace } from "../../support/workspace.ts";
import { outcome, startCaller } from "./caller.ts";
import { append, EVERYTHING_WRITABLE, read, write } from "./mounted.ts";

describe("overlay pitfalls that need a mount of their own", () => {
  test("link and rename as escalation: a file that is not writable cannot be given another name", async () => {
    await using workspace = await openWorkspace({
      lower: { readable: { file: "read" }, listed: { file: "view" }, open: { own: "own" } },
      rules: [
        { pattern: "/**", permission: "read" },
        { pattern: "/listed/**", permission: "view" },
        { pattern: "/open/**", permission: "write" },
      ],
    });
    await using fs = await startCaller();
    await fs.chdir(workspace.mountPoint);
    for (const source of ["readable/file", "listed/file"]) {
      expect(await outcome(fs.link(source, "open/linked")), source).toBe("EACCES");
      expect(await outcome(fs.rename(source, "open/moved")), source).toBe("EACCES");
      expect(await outcome(fs.rename2(source, "open/own", "EXCHANGE")), source).toBe("EACCES");
    }
    expect(await fs.listdir("open")).toEqual(["own"]);
  });

  test("what was removed, replaced and recreated is the same after a remount", async () => {
    await using workspace = await openWorkspace({
      lower: { a: { x: "x", y: "y", sub: { z: "z" } }, b: { x: "x" }, c: "c", "d.txt": "d", ["l".repeat(255)]: "long" },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    const at = (path: string) => `${workspace.mountPoint}/${path}`;
    await fs.run(["rm", "-r", at("a")]);
    await fs.mkdir(at("a"));
    await write(fs, at("a/own"), "own");
    await fs.unlink(at("b/x"));
    await fs.rmdir(at("b"));
    await fs.unlink(at("c"));
    await fs.mkdir(at("c"));
    await fs.rename(at("d.txt"), at("c/d.txt"));
    await fs.unlink(at("l".repeat(255)));
    const live = await fs.listing(workspace.mountPoint, "0");
    expect(Object.keys(live)).toEqual([".", "a", "a/own", "c", "c/d.txt"]);
    await workspace.remount();
    expect(await fs.listing(workspace.mountPoint, "0")).toEqual(live);
  });

  test("copy-up keeps holes, and the copy takes no more room than the original", async () => {
    await using workspace = await openWorkspace({ lower: { sparse: "" }, rules: EVERYTHING_WRITABLE });
    workspace.onHost((lower) => {
      execFileSync("sh", [
        "-c",
        'truncate -s 32M "$0" && printf data | dd of="$0" bs=1 seek=10M conv=notrunc status=none',
        `${lower}/sparse`,
      ]);
    });
    await workspace.remount();
    await using fs = await startCaller();
    await append(fs, `${workspace.mountPoint}/sparse`, "end");
    const found = await fs.lstat(`${workspace.mountPoint}/sparse`);
    expect(found.size).toBe(32 * 1024 * 1024 + 3);
    expect(found.blocks * 512).toBeLessThan(1024 * 1024);
  });

  test("copy_file_range copies up the target, not the source", async () => {
    await using workspace = await openWorkspace({
      lower: { source: "source", target: "target" },
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    const source = await fs.open(`${workspace.mountPoint}/source`, "O_RDONLY");
    const target = await fs.open(`${workspace.mountPoint}/target`, "O_RDWR");
    expect(await fs.copyFileRange(source, target, 4, 0, 0)).toBe(4);
    expect(await fs.pread(target, 100, 0)).toBe("souret");
    expect([existsSync(`${workspace.delta}/tree/source`), existsSync(`${workspace.delta}/tree/target`)]).toEqual([
      false,
      true,
    ]);
    await fs.close(source);
    await fs.close(target);
  });

  test("several codebase layers: the upper one wins, and directories merge", async () => {
    await using workspace = await openWorkspace({
      lower: { both: "upper", directory: { upper: "1" }, "file-over-directory": "file" },
      lowers: [
        { both: "lower", directory: { lower: "2" }, "file-over-directory": { hidden: "" }, deep: { only: "3" } },
      ],
      rules: EVERYTHING_WRITABLE,
    });
    await using fs = await startCaller();
    await fs.chdir(workspace.mountPoint);
    expect(await fs.listdir(".")).toEqual(["both", "deep", "directory", "file-over-directory"]);
    expect(await read(fs, "both")).toBe("upper");
    expect(await fs.listdir("directory")).toEqual(["lower", "upper"]);
    expect((await fs.lstat("file-over-directory")).type).toBe("file");
    await append(fs, "deep/only", "!");
    await fs.unlink("both");
    await fs.unlink("file-over-directory");
    await fs.unlink("directory/lower");
    expect(await fs.listdir(".")).toEqual(["deep", "directory"]);
    expect(await fs.listdir("directory")).toEqual(["upper"]);
    expect(await read(fs, "deep/only")).toBe("3!");
    await fs.chdir("/");
  });
});
