import { expect, test } from "vitest";
import { type Caller, outcome } from "./caller.ts";
import { describeMountedByAnyone, read, write } from "./mounted.ts";

/** What can stand at a name. Those of the codebase and those of the delta must behave alike, but for moved directories. */
const KINDS = ["file", "empty directory", "full directory", "symlink", "nothing"] as const;
type Kind = (typeof KINDS)[number];
const LAYERS = ["codebase", "delta"] as const;
type Layer = (typeof LAYERS)[number];

const lower = Object.fromEntries(
  ["source", "target"].flatMap((role) => [
    [`${role} file`, `${role} content`],
    [`${role} empty directory`, {}],
    [`${role} full directory`, { inside: "inside" }],
  ]),
);

describeMountedByAnyone(
  "rename",
  {
    lower: {
      ...Object.fromEntries(cases().map(({ name }) => [name, lower])),
      traveller: "content",
      vacated: { inside: "x" },
    },
  },
  (m) => {
    for (const { name, source, target, from, onto } of cases()) {
      const expected = expectedOutcome(source, target, from);
      test(`of a ${source} (${from}) onto ${target === "nothing" ? "nothing" : `a ${target} (${onto})`} is ${expected}`, async () => {
        const { fs } = m;
        const paths = {
          source: await prepared(fs, name, "source", source, from),
          target: await prepared(fs, name, "target", target, onto),
        };
        const before = await fs.listing(name);
        expect(await outcome(fs.rename(paths.source, paths.target))).toBe(expected);
        if (expected !== "ok") {
          expect(await fs.listing(name)).toEqual(before);
          return;
        }
        expect(await outcome(fs.lstat(paths.source))).toBe("ENOENT");
        const after = await fs.lstat(paths.target);
        expect(after.type).toBe(typeOf(source));
        if (source === "file") expect(await read(fs, paths.target)).toBe("source content");
        if (source === "full directory") expect(await fs.listdir(paths.target)).toEqual(["inside"]);
        if (source === "empty directory") expect(await fs.listdir(paths.target)).toEqual([]);
      });
    }

    test("of a directory to where one of the codebase was keeps its time", async () => {
      const { fs } = m;
      await fs.unlink("vacated/inside");
      await fs.rmdir("vacated");
      await fs.mkdir("newcomer");
      await fs.utimens("newcomer", "1000000000000000001", "1000000000000000001");
      await fs.rename("newcomer", "vacated");
      expect((await fs.lstat("vacated")).mtime).toBe("1000000000000000001");
      expect(await fs.listdir("vacated")).toEqual([]);
    });

    test("onto itself, and onto another name of the same file, changes nothing", async () => {
      const { fs } = m;
      await write(fs, "same", "same");
      await fs.rename("same", "same");
      await fs.link("same", "other-name");
      await fs.rename("same", "other-name");
      expect([await read(fs, "same"), await read(fs, "other-name")]).toEqual(["same", "same"]);
      expect((await fs.lstat("same")).nlink).toBe(2);
    });

    test("into a directory of its own is EINVAL, onto its own parent ENOTEMPTY", async () => {
      const { fs } = m;
      await fs.run(["mkdir", "-p", "outer/inner"]);
      expect(await outcome(fs.rename("outer", "outer/inner/outer"))).toBe("EINVAL");
      expect(await outcome(fs.rename("outer/inner", "outer"))).toBe("ENOTEMPTY");
    });

    test("with a missing source or parent is ENOENT, through a file ENOTDIR", async () => {
      const { fs } = m;
      await write(fs, "a-file", "");
      expect(await outcome(fs.rename("missing", "x"))).toBe("ENOENT");
      expect(await outcome(fs.rename("a-file", "missing/x"))).toBe("ENOENT");
      expect(await outcome(fs.rename("a-file", "a-file/x"))).toBe("ENOTDIR");
      expect(await outcome(fs.rename("a-file", "new/"))).toBe("ENOTDIR");
    });

    test("moves open files and working directories along", async () => {
      const { fs } = m;
      await fs.mkdir("moving");
      await write(fs, "moving/file", "held");
      const fd = await fs.open("moving/file", "O_RDWR");
      const inside = await m.another();
      await inside.chdir("moving");
      await fs.rename("moving", "moved");
      expect(await inside.listdir(".")).toEqual(["file"]);
      expect(await inside.getcwd()).toBe(`${m.workspace.mountPoint}/moved`);
      await fs.pwrite(fd, "HELD", 0);
      expect(await read(fs, "moved/file")).toBe("HELD");
      await write(inside, "new", "made inside");
      expect(await read(fs, "moved/new")).toBe("made inside");
      await fs.close(fd);
    });

    test("EXCHANGE swaps entries of different kinds and layers", async () => {
      const { fs } = m;
      await fs.mkdir("swap");
      await write(fs, "swap/file", "file");
      await fs.mkdir("swap/directory");
      await write(fs, "swap/directory/inside", "inside");
      await fs.symlink("nowhere", "swap/link");
      await fs.rename2("swap/file", "swap/directory", "EXCHANGE");
      expect([await read(fs, "swap/directory"), await read(fs, "swap/file/inside")]).toEqual(["file", "inside"]);
      await fs.rename2("swap/link", "swap/file", "EXCHANGE");
      expect([await fs.readlink("swap/file"), await fs.listdir("swap/link")]).toEqual(["nowhere", ["inside"]]);
      expect(await outcome(fs.rename2("swap/link", "swap/missing", "EXCHANGE"))).toBe("ENOENT");
    });

    test("of a file from the codebase again and again keeps content and identity", async () => {
      const { fs } = m;
      const { ino } = await fs.lstat("traveller");
      let at = "traveller";
      for (const next of ["one", "two", "traveller", "three"]) {
        await fs.rename(at, next);
        expect([await read(fs, next), (await fs.lstat(next)).ino]).toEqual(["content", ino]);
        expect(await outcome(fs.lstat(at))).toBe("ENOENT");
        at = next;
      }
    });
  },
);

interface Case {
  readonly name: string;
  readonly source: Kind;
  readonly target: Kind;
  readonly from: Layer;
  readonly onto: Layer;
}

function cases(): Case[] {
  const sources = KINDS.filter((kind) => kind !== "nothing");
  return sources.flatMap((source) =>
    KINDS.flatMap((target) =>
      LAYERS.flatMap((from) =>
        (target === "nothing" ? LAYERS.slice(1) : LAYERS).map((onto) => ({
          name: `${source} of ${from} onto ${target} of ${onto}`,
          source,
          target,
          from,
          onto,
        })),
      ),
    ),
  );
}

function expectedOutcome(source: Kind, target: Kind, from: Layer): string {
  const directories = [source, target].map((kind) => typeOf(kind) === "directory");
  if (target !== "nothing" && directories[0] && !directories[1]) return "ENOTDIR";
  if (!directories[0] && directories[1]) return "EISDIR";
  if (directories[0] && from === "codebase") return "EXDEV";
  return target === "full directory" ? "ENOTEMPTY" : "ok";
}

function typeOf(kind: Kind): string {
  return kind.endsWith("directory") ? "directory" : kind;
}

/** Makes sure that the entry exists in that layer and says where. Symbolic links are made in the delta always. */
async function prepared(
  fs: Caller,
  directory: string,
  role: "source" | "target",
  kind: Kind,
  layer: Layer,
): Promise<string> {
  if (kind === "nothing") return `${directory}/new name`;
  if (layer === "codebase" && kind !== "symlink") return `${directory}/${role} ${kind}`;
  const path = `${directory}/${role} in the delta`;
  if (kind === "file") await write(fs, path, `${role} content`);
  if (kind === "symlink") await fs.symlink("nowhere", path);
  if (kind === "empty directory" || kind === "full directory") await fs.mkdir(path);
  if (kind === "full directory") await write(fs, `${path}/inside`, "inside");
  return path;
}
