import type { Rule } from "@agentfense/permission";
import { describe, expect, test } from "vitest";
import { openWorkspace } from "../../support/workspace.ts";
import { outcome, startCaller } from "../posix/caller.ts";
import { write } from "../posix/mounted.ts";

/** Everything is hidden but the entries named "shown", wherever they are. */
const ONLY_SHOWN: readonly Rule[] = [
  { pattern: "**/*", permission: "none" },
  { pattern: "shown", permission: "write", priority: 1 },
  { pattern: "/visible/**", permission: "write", priority: 1 },
];

/** Each way of taking away the last visible entry of a directory that is only a way to it. */
const REMOVALS = {
  unlink: (fs: Fs, path: string) => fs.unlink(path),
  "rename to a new name": (fs: Fs, path: string) => fs.rename(path, "visible/new"),
  "rename onto a file": (fs: Fs, path: string) => fs.rename(path, "visible/there"),
  exchange: async (fs: Fs, path: string) => {
    await fs.rename2(path, "visible/there", "EXCHANGE");
    await fs.unlink(path);
  },
} satisfies Record<string, (fs: Fs, path: string) => Promise<unknown>>;

type Fs = Awaited<ReturnType<typeof startCaller>>;

describe("a directory that is only a way to something visible", () => {
  for (const [title, remove] of Object.entries(REMOVALS)) {
    test(`is gone from lookup and listing, with those above it, after ${title} of the last`, async () => {
      await using workspace = await openWorkspace({
        lower: { way: { further: { shown: "1", hidden: "2" } }, visible: { there: "3" }, shown: "4" },
        rules: ONLY_SHOWN,
      });
      await using fs = await startCaller();
      await fs.chdir(workspace.mountPoint);
      expect([await fs.listdir("."), await fs.listdir("way/further")]).toEqual([
        ["shown", "visible", "way"],
        ["shown"],
      ]);
      expect((await fs.lstat("way/further")).type).toBe("directory");
      await remove(fs, "way/further/shown");
      expect(await fs.listdir(".")).toEqual(["shown", "visible"]);
      expect([await outcome(fs.lstat("way")), await outcome(fs.lstat("way/further"))]).toEqual(["ENOENT", "ENOENT"]);
      expect(await outcome(fs.open("way/further/shown", "O_WRONLY|O_CREAT"))).toBe("ENOENT");
      await fs.chdir("/");
    });
  }

  test("stays while something else in it is visible, and takes what may be written", async () => {
    await using workspace = await openWorkspace({
      lower: { way: { shown: "", sub: { shown: "" } } },
      rules: ONLY_SHOWN,
    });
    await using fs = await startCaller();
    await fs.chdir(workspace.mountPoint);
    await fs.unlink("way/shown");
    expect(await fs.listdir("way")).toEqual(["sub"]);
    expect(await outcome(fs.open("way/other", "O_WRONLY|O_CREAT"))).toBe("EACCES");
    await write(fs, "way/shown", "again");
    expect(await fs.listdir("way")).toEqual(["shown", "sub"]);
    await fs.chdir("/");
  });

  test("comes and goes with the rules", async () => {
    await using workspace = await openWorkspace({ lower: { way: { further: { shown: "1" } } }, rules: ONLY_SHOWN });
    await using fs = await startCaller();
    const listing = () => fs.listdir(workspace.mountPoint);
    expect(await listing()).toEqual(["way"]);
    await workspace.updateRules([{ pattern: "/way/further/other", permission: "read" }]);
    expect(await listing()).toEqual([]);
    expect(await outcome(fs.lstat(`${workspace.mountPoint}/way`))).toBe("ENOENT");
    await workspace.updateRules(ONLY_SHOWN);
    expect(await listing()).toEqual(["way"]);
    expect(await fs.listdir(`${workspace.mountPoint}/way/further`)).toEqual(["shown"]);
  });
});
