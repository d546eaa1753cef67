import { describe, expect, test } from "vitest";
import { link } from "../../support/tree.ts";
import { openWorkspace } from "../../support/workspace.ts";
import { outcome, startCaller } from "./caller.ts";
import { append, describeMountedByAnyone, EVERYTHING_WRITABLE } from "./mounted.ts";

describeMountedByAnyone(
  "extended attributes",
  { lower: { file: "file", directory: {}, link: link("file"), copied: "copied" } },
  (m) => {
    test("user attributes of files and directories can be set, read, listed and removed", async () => {
      const { fs } = m;
      for (const path of ["file", "directory"]) {
        await fs.setxattr(path, "user.one", "1");
        await fs.setxattr(path, "user.two", "\0binary\xff");
        expect(await fs.listxattr(path)).toEqual(["user.one", "user.two"]);
        expect(await fs.getxattr(path, "user.two")).toBe("\0binary\xff");
        await fs.setxattr(path, "user.one", "another");
        expect(await fs.getxattr(path, "user.one")).toBe("another");
        await fs.removexattr(path, "user.one");
        expect(await fs.listxattr(path)).toEqual(["user.two"]);
        expect(await outcome(fs.getxattr(path, "user.one"))).toBe("ENODATA");
      }
    });

    for (const size of [0, 255, 256, 257, 3000]) {
      test(`a value of ${size} bytes is kept whole`, async () => {
        const { fs } = m;
        const value = "v".repeat(size);
        await fs.close(await fs.open(`sized-${size}`, "O_WRONLY|O_CREAT"));
        await fs.setxattr(`sized-${size}`, "user.sized", value);
        expect(await fs.getxattr(`sized-${size}`, "user.sized")).toBe(value);
      });
    }

    test("attributes follow a file through rename, link and later writes", async () => {
      const { fs } = m;
      await fs.setxattr("copied", "user.kept", "kept");
      await append(fs, "copied", "!");
      await fs.rename("copied", "renamed");
      await fs.link("renamed", "linked");
      expect(await fs.getxattr("linked", "user.kept")).toBe("kept");
      await fs.setxattr("linked", "user.other", "seen through the other name");
      expect(await fs.getxattr("renamed", "user.other")).toBe("seen through the other name");
    });

    test("a symbolic link has no user attributes of its own", async () => {
      const { fs } = m;
      await fs.setxattr("link", "user.through", "1");
      expect(await fs.getxattr("file", "user.through")).toBe("1");
    });

    test("attributes that mean something to the host cannot be set", async () => {
      const { fs } = m;
      for (const name of ["trusted.overlay.opaque", "security.capability", "system.something", "nonsense"]) {
        expect(await outcome(fs.setxattr("file", name, "x")), name).toMatch(/^(EPERM|EOPNOTSUPP|EACCES|EINVAL)$/);
      }
      expect((await fs.listxattr("file")).filter((name) => !name.startsWith("user."))).toEqual([]);
    });
  },
);

describe("extended attributes switched off", () => {
  test("every call says EOPNOTSUPP", async () => {
    await using workspace = await openWorkspace({ lower: { file: "file" }, xattrs: false, rules: EVERYTHING_WRITABLE });
    await using fs = await startCaller();
    const path = `${workspace.mountPoint}/file`;
    expect(await outcome(fs.setxattr(path, "user.a", "1"))).toBe("EOPNOTSUPP");
    expect(await outcome(fs.getxattr(path, "user.a"))).toBe("EOPNOTSUPP");
    expect(await outcome(fs.removexattr(path, "user.a"))).toBe("EOPNOTSUPP");
  });
});
