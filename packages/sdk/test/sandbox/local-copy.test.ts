import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ApplyOutcome, Change, ChangeKind } from "../../src/model/records.ts";
import type { CopySource, Entry, NewEntry } from "../../src/sandbox/local-copy/entry.ts";
import { LocalCopy } from "../../src/sandbox/local-copy/local-copy.ts";

/** A text is a file, `null` a directory, `{ link }` a symbolic link. */
type Tree = Readonly<
  Record<string, string | null | { readonly link: string } | { readonly text: string; readonly mode: number }>
>;

let scratch: string;
let top: string;
beforeEach(() => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), "agentfense-local-copy-")));
  top = join(scratch, "project");
  mkdirSync(top);
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

function entryOf(value: Tree[string]): NewEntry {
  if (value === null) return { kind: "directory", mode: 0o755 };
  if (typeof value === "string") return { kind: "file", sha256: sha256(value), mode: 0o644 };
  if ("link" in value) return { kind: "symlink", target: value.link, mode: 0o777 };
  return { kind: "file", sha256: sha256(value.text), mode: value.mode };
}

function textOf(value: Tree[string] | undefined): string {
  if (typeof value === "string") return value;
  return value !== null && value !== undefined && "text" in value ? value.text : "";
}

/** Puts a tree on the disk and takes it for what was uploaded. */
function uploaded(tree: Tree): LocalCopy {
  for (const [path, value] of Object.entries(tree)) {
    const place = join(top, path);
    mkdirSync(dirname(place), { recursive: true });
    if (value === null) mkdirSync(place, { recursive: true });
    else if (typeof value === "object" && "link" in value) symlinkSync(value.link, place);
    else writeFileSync(place, textOf(value));
  }
  const entries = Object.entries(tree).map(([path, value]): [string, Entry] => [path, entryOf(value)]);
  return new LocalCopy(top, entries);
}

/** A codebase that has this after the changes. */
function codebase(tree: Tree): CopySource {
  return {
    entry: async (path) => (path in tree ? entryOf(tree[path]!) : undefined),
    async *content(path) {
      const bytes = Buffer.from(textOf(tree[path]));
      for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3);
    },
  };
}

function outcome(kind: ChangeKind, path: string, more: Partial<Change> & { applied?: boolean } = {}): ApplyOutcome {
  const { applied = true, ...change } = more;
  return {
    change: { kind, path, oldPath: "", type: "file", size: 0, sensitive: false, ...change },
    applied,
    reason: applied ? "" : "level read",
    sensitive: false,
    conflict: false,
  };
}

const brief = (outcomes: readonly ApplyOutcome[]) =>
  outcomes.map(({ change, applied, conflict, reason }) => [change.path, applied, conflict, reason]);

const read = (path: string): string => readFileSync(join(top, path), "utf8");
/** Everything below the directory, links as links. */
function onDisk(): Record<string, string> {
  const found = readdirSync(top, { recursive: true, withFileTypes: true }).map((entry): [string, string] => {
    const place = join(entry.parentPath, entry.name);
    const path = place.slice(top.length + 1);
    if (entry.isDirectory()) return [path, "/"];
    return [path, entry.isSymbolicLink() ? `-> ${readlinkSync(place)}` : readFileSync(place, "utf8")];
  });
  return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}
const HAS = "; the codebase has the change";

describe("what a sandbox did comes back", () => {
  test("files that are new, changed, deleted and renamed", async () => {
    const copy = uploaded({ "a.txt": "one", "b.txt": "bbb", "old.txt": "moved", keep: "kept" });
    const source = codebase({
      "a.txt": "two",
      "new.txt": "new content",
      "dir/moved.txt": "moved",
      keep: "kept",
      dir: null,
    });
    const outcomes = [
      outcome("modified", "/a.txt"),
      outcome("deleted", "/b.txt"),
      outcome("added", "/dir", { type: "directory" }),
      outcome("renamed", "/dir/moved.txt", { oldPath: "/old.txt" }),
      outcome("added", "/new.txt"),
    ];
    expect(await copy.write(outcomes, source)).toEqual(outcomes);
    expect(onDisk()).toEqual({
      "a.txt": "two",
      dir: "/",
      "dir/moved.txt": "moved",
      keep: "kept",
      "new.txt": "new content",
    });
  });

  test("what was not applied to the codebase is not touched, and told as it was", async () => {
    const copy = uploaded({ "a.txt": "one" });
    const outcomes = [outcome("modified", "/a.txt", { applied: false })];
    expect(await copy.write(outcomes, codebase({ "a.txt": "two" }))).toEqual(outcomes);
    expect(read("a.txt")).toBe("one");
  });

  test("symbolic links as links: new ones, ones that lead elsewhere now, and one in the place of a file", async () => {
    const copy = uploaded({ "a.txt": "one", "b.txt": "two", link: { link: "a.txt" } });
    const tree = { "a.txt": "one", link: { link: "b.txt" }, "b.txt": { link: "a.txt" }, out: { link: "/etc/passwd" } };
    const outcomes = [
      outcome("modified", "/b.txt", { type: "symlink" }),
      outcome("modified", "/link", { type: "symlink" }),
      outcome("added", "/out", { type: "symlink" }),
    ];
    expect(await copy.write(outcomes, codebase(tree))).toEqual(outcomes);
    expect(onDisk()).toEqual({ "a.txt": "one", "b.txt": "-> a.txt", link: "-> b.txt", out: "-> /etc/passwd" });
  });

  test("permission bits, of files whose content stayed too; never more than those", async () => {
    const copy = uploaded({ "run.sh": "#!", "new.sh": "old", dir: null });
    const tree = {
      "run.sh": { text: "#!", mode: 0o4755 },
      "new.sh": { text: "new", mode: 0o6711 },
      "made.sh": { text: "made", mode: 0o600 },
    };
    const outcomes = ["/made.sh", "/new.sh", "/run.sh"].map((path) => outcome("modified", path));
    expect(await copy.write(outcomes, codebase(tree))).toEqual(outcomes);
    const modes = ["run.sh", "new.sh", "made.sh"].map((path) => lstatSync(join(top, path)).mode & 0o7777);
    expect(modes).toEqual([0o755, 0o711, 0o600]);
  });

  test("a directory that ends up unwritable, with what is in it", async () => {
    const copy = uploaded({});
    const source: CopySource = {
      ...codebase({ "shut/inner/a.txt": "in" }),
      entry: async (path) => {
        if (path === "shut") return { kind: "directory", mode: 0o555 };
        if (path === "shut/inner") return { kind: "directory", mode: 0o500 };
        return { kind: "file", sha256: sha256("in"), mode: 0o444 };
      },
    };
    const outcomes = [
      outcome("added", "/shut", { type: "directory" }),
      outcome("added", "/shut/inner", { type: "directory" }),
      outcome("added", "/shut/inner/a.txt"),
    ];
    expect(await copy.write(outcomes, source)).toEqual(outcomes);
    const modes = ["shut", "shut/inner", "shut/inner/a.txt"].map((path) => statSync(join(top, path)).mode & 0o777);
    expect(modes).toEqual([0o555, 0o500, 0o444]);
    for (const path of ["shut", "shut/inner"]) chmodSync(join(top, path), 0o755);
  });

  test("in whatever order the server tells it", async () => {
    const copy = uploaded({ dir: null, "dir/sub": null, "dir/sub/a.txt": "a", "x.txt": "x" });
    const outcomes = [
      outcome("deleted", "/dir", { type: "directory" }),
      outcome("added", "/new/deep/file.txt"),
      outcome("deleted", "/dir/sub", { type: "directory" }),
      outcome("deleted", "/dir/sub/a.txt"),
      outcome("added", "/new/deep", { type: "directory" }),
      outcome("added", "/new", { type: "directory" }),
    ];
    const source = codebase({ new: null, "new/deep": null, "new/deep/file.txt": "f", "x.txt": "x" });
    expect(await copy.write(outcomes, source)).toEqual(outcomes);
    expect(onDisk()).toEqual({ new: "/", "new/deep": "/", "new/deep/file.txt": "f", "x.txt": "x" });
  });

  test("a second time, over what was written the first time", async () => {
    const copy = uploaded({ "a.txt": "one" });
    await copy.write([outcome("modified", "/a.txt"), outcome("added", "/b")], codebase({ "a.txt": "two", b: "b" }));
    const outcomes = [outcome("modified", "/a.txt"), outcome("deleted", "/b")];
    expect(await copy.write(outcomes, codebase({ "a.txt": "three" }))).toEqual(outcomes);
    expect(onDisk()).toEqual({ "a.txt": "three" });
  });

  test("directories on the way that are missing are made", async () => {
    const copy = uploaded({ src: null, "src/a.ts": "a" });
    rmSync(join(top, "src"), { recursive: true });
    const outcomes = [outcome("added", "/src/deep/er/b.ts"), outcome("added", "/src/deep/er/c.ts")];
    const source = codebase({ "src/deep/er/b.ts": "b", "src/deep/er/c.ts": "c" });
    expect(await copy.write(outcomes, source)).toEqual(outcomes);
    expect(read("src/deep/er/b.ts") + read("src/deep/er/c.ts")).toBe("bc");
  });
});

describe("what became something else", () => {
  test("a file is a directory now", async () => {
    const copy = uploaded({ thing: "file" });
    const outcomes = [outcome("modified", "/thing", { type: "directory" }), outcome("added", "/thing/in.txt")];
    expect(await copy.write(outcomes, codebase({ thing: null, "thing/in.txt": "in" }))).toEqual(outcomes);
    expect(onDisk()).toEqual({ thing: "/", "thing/in.txt": "in" });
  });

  test("a directory is a file now, once all that was in it is gone", async () => {
    const copy = uploaded({ thing: null, "thing/a": "a", "thing/b": "b" });
    const outcomes = [outcome("deleted", "/thing/a"), outcome("deleted", "/thing/b"), outcome("modified", "/thing")];
    expect(await copy.write(outcomes, codebase({ thing: "file" }))).toEqual(outcomes);
    expect(onDisk()).toEqual({ thing: "file" });
  });

  test("a directory with somebody's file in it does not become a file", async () => {
    const copy = uploaded({ thing: null, "thing/a": "a" });
    writeFileSync(join(top, "thing/mine"), "mine");
    const outcomes = [outcome("deleted", "/thing/a"), outcome("modified", "/thing")];
    expect(brief(await copy.write(outcomes, codebase({ thing: "file" })))).toEqual([
      ["/thing/a", true, false, ""],
      ["/thing", false, true, `a directory is here that holds what the sandbox did not delete, or did not see${HAS}`],
    ]);
    expect(onDisk()).toEqual({ thing: "/", "thing/mine": "mine" });
  });

  test("a link to a directory becomes that directory's name, and what it led to stays", async () => {
    const copy = uploaded({ real: null, "real/a": "a", alias: { link: "real" } });
    const outcomes = [outcome("modified", "/alias", { type: "directory" }), outcome("added", "/alias/b")];
    const source = codebase({ real: null, "real/a": "a", alias: null, "alias/b": "b" });
    expect(await copy.write(outcomes, source)).toEqual(outcomes);
    expect(onDisk()).toEqual({ alias: "/", "alias/b": "b", real: "/", "real/a": "a" });
  });
});

describe("work of others is left alone", () => {
  const CHANGED = `it changed here since the upload${HAS}`;

  test("a file that changed since the upload, whether it is changed or deleted there", async () => {
    const copy = uploaded({ "a.txt": "one", "b.txt": "one", "c.txt": "one" });
    for (const name of ["a.txt", "b.txt"]) writeFileSync(join(top, name), "mine");
    const outcomes = ["/a.txt", "/c.txt"].map((path) => outcome("modified", path));
    const written = await copy.write(
      [...outcomes, outcome("deleted", "/b.txt")],
      codebase({ "a.txt": "two", "c.txt": "two" }),
    );
    expect(brief(written)).toEqual([
      ["/a.txt", false, true, CHANGED],
      ["/c.txt", true, false, ""],
      ["/b.txt", false, true, CHANGED],
    ]);
    expect(onDisk()).toEqual({ "a.txt": "mine", "b.txt": "mine", "c.txt": "two" });
  });

  test("a file that was removed here is not brought back, and one that both removed is no conflict", async () => {
    const copy = uploaded({ "a.txt": "one", "b.txt": "one" });
    for (const name of ["a.txt", "b.txt"]) rmSync(join(top, name));
    const outcomes = [outcome("modified", "/a.txt"), outcome("deleted", "/b.txt")];
    expect(brief(await copy.write(outcomes, codebase({ "a.txt": "two" })))).toEqual([
      ["/a.txt", false, true, `it was removed here since the upload${HAS}`],
      ["/b.txt", true, false, ""],
    ]);
    expect(onDisk()).toEqual({});
  });

  test("a file that was not uploaded, unless both have written the same", async () => {
    const copy = uploaded({});
    writeFileSync(join(top, "mine.txt"), "mine");
    writeFileSync(join(top, "same.txt"), "same");
    const outcomes = [outcome("added", "/mine.txt"), outcome("added", "/same.txt")];
    expect(brief(await copy.write(outcomes, codebase({ "mine.txt": "theirs", "same.txt": "same" })))).toEqual([
      ["/mine.txt", false, true, `it is here and was not uploaded${HAS}`],
      ["/same.txt", true, false, ""],
    ]);
    expect(read("mine.txt")).toBe("mine");
  });

  test("nothing goes into a directory that was not uploaded", async () => {
    const copy = uploaded({});
    mkdirSync(join(top, "node_modules"));
    const outcomes = [outcome("added", "/node_modules", { type: "directory" }), outcome("added", "/node_modules/x.js")];
    expect(brief(await copy.write(outcomes, codebase({ node_modules: null, "node_modules/x.js": "x" })))).toEqual([
      ["/node_modules", false, true, `it is here and was not uploaded${HAS}`],
      ["/node_modules/x.js", false, true, `the directory node_modules is here and was not uploaded${HAS}`],
    ]);
    expect(onDisk()).toEqual({ node_modules: "/" });
  });

  test("a directory that still holds something is not deleted", async () => {
    const copy = uploaded({ dir: null, "dir/a": "a", "dir/b": "b" });
    writeFileSync(join(top, "dir/b"), "mine");
    const outcomes = [
      outcome("deleted", "/dir/a"),
      outcome("deleted", "/dir/b"),
      outcome("deleted", "/dir", { type: "directory" }),
    ];
    expect(brief(await copy.write(outcomes, codebase({})))).toEqual([
      ["/dir/a", true, false, ""],
      ["/dir/b", false, true, CHANGED],
      ["/dir", false, true, `the directory holds what the sandbox did not delete, or did not see${HAS}`],
    ]);
    expect(onDisk()).toEqual({ dir: "/", "dir/b": "mine" });
  });

  test("a file that became a link, a directory or a socket-like thing here is no longer the uploaded one", async () => {
    const copy = uploaded({ a: "one", b: "one" });
    for (const name of ["a", "b"]) rmSync(join(top, name));
    writeFileSync(join(scratch, "elsewhere"), "one");
    symlinkSync("../elsewhere", join(top, "a"));
    mkdirSync(join(top, "b"));
    const outcomes = [outcome("modified", "/a"), outcome("deleted", "/b")];
    expect(brief(await copy.write(outcomes, codebase({ a: "two" })))).toEqual([
      ["/a", false, true, CHANGED],
      ["/b", false, true, CHANGED],
    ]);
    expect(readFileSync(join(scratch, "elsewhere"), "utf8")).toBe("one");
  });

  test("a file that is changed while its new content arrives", async () => {
    const copy = uploaded({ "a.txt": "one" });
    const source = codebase({ "a.txt": "two" });
    const slow: CopySource = {
      ...source,
      async *content(path) {
        yield* source.content(path);
        writeFileSync(join(top, "a.txt"), "mine");
      },
    };
    expect(brief(await copy.write([outcome("modified", "/a.txt")], slow))).toEqual([
      ["/a.txt", false, true, `it changed here meanwhile${HAS}`],
    ]);
    expect(onDisk()).toEqual({ "a.txt": "mine" });
  });
});

describe("nothing outside is in reach", () => {
  const hostile = ["/../outside", "/a/../../outside", "//outside", "/a//b", "/.", "/a/./b", "/", "/a\0b", "../outside"];

  test.each(hostile)("the path %j is refused", async (path) => {
    writeFileSync(join(scratch, "outside"), "untouched");
    const copy = uploaded({});
    const source: CopySource = {
      entry: async () => ({ kind: "file", sha256: sha256("evil"), mode: 0o644 }),
      async *content() {
        yield Buffer.from("evil");
      },
    };
    const [written] = await copy.write([outcome("added", path)], source);
    expect(written).toMatchObject({ applied: false, reason: `it is no path of this directory${HAS}` });
    expect(readdirSync(scratch).sort()).toEqual(["outside", "project"]);
    expect(readFileSync(join(scratch, "outside"), "utf8")).toBe("untouched");
    expect(onDisk()).toEqual({});
  });

  test.each(["/../outside", "/a/../../outside"])("nor is anything deleted at %j", async (path) => {
    writeFileSync(join(scratch, "outside"), "untouched");
    const [written] = await uploaded({ a: null }).write([outcome("deleted", path)], codebase({}));
    expect(written).toMatchObject({ applied: false });
    expect(existsSync(join(scratch, "outside"))).toBe(true);
  });

  test("a link at any place of the way ends it, wherever it leads", async () => {
    mkdirSync(join(scratch, "outside/deep"), { recursive: true });
    writeFileSync(join(scratch, "outside/deep/a.txt"), "one");
    const copy = uploaded({ src: null, "src/deep": null, "src/deep/a.txt": "one", "src/b.txt": "one" });
    rmSync(join(top, "src"), { recursive: true });
    symlinkSync("../outside", join(top, "src"));
    const outcomes = [
      outcome("modified", "/src/deep/a.txt"),
      outcome("added", "/src/deep/new.txt"),
      outcome("deleted", "/src/b.txt"),
    ];
    const source = codebase({ "src/deep/a.txt": "two", "src/deep/new.txt": "new" });
    const reason = `src is not a directory here${HAS}`;
    expect(brief(await copy.write(outcomes, source))).toEqual(
      outcomes.map(({ change }) => [change.path, false, true, reason]),
    );
    expect(readdirSync(join(scratch, "outside/deep"))).toEqual(["a.txt"]);
    expect(readFileSync(join(scratch, "outside/deep/a.txt"), "utf8")).toBe("one");
  });

  test("a link that the sandbox made is not gone through afterwards", async () => {
    mkdirSync(join(scratch, "outside"));
    const copy = uploaded({});
    await copy.write([outcome("added", "/way", { type: "symlink" })], codebase({ way: { link: "../outside" } }));
    const written = await copy.write([outcome("added", "/way/evil")], codebase({ "way/evil": "evil" }));
    expect(brief(written)).toEqual([["/way/evil", false, true, `way is not a directory here${HAS}`]]);
    expect(readdirSync(join(scratch, "outside"))).toEqual([]);
  });

  test("a directory that becomes a link while content arrives", async () => {
    mkdirSync(join(scratch, "outside"));
    writeFileSync(join(scratch, "outside/a.txt"), "one");
    const copy = uploaded({ src: null, "src/a.txt": "one" });
    const source = codebase({ "src/a.txt": "two" });
    const swapping: CopySource = {
      ...source,
      async *content(path) {
        yield* source.content(path);
        rmSync(join(top, "src"), { recursive: true });
        symlinkSync("../outside", join(top, "src"));
      },
    };
    const [written] = await copy.write([outcome("modified", "/src/a.txt")], swapping);
    expect(written).toMatchObject({ applied: false });
    expect(readdirSync(join(scratch, "outside"))).toEqual(["a.txt"]);
    expect(readFileSync(join(scratch, "outside/a.txt"), "utf8")).toBe("one");
  });

  test.each([".git/hooks/pre-commit", "sub/.GIT/config", ".git"])(
    "%s is not written unless it was uploaded",
    async (path) => {
      const copy = uploaded({ sub: null });
      const [written] = await copy.write([outcome("added", `/${path}`)], codebase({ [path]: "evil" }));
      expect(written).toMatchObject({
        applied: false,
        reason: `what belongs to Git is not written from a sandbox${HAS}`,
      });
      expect(onDisk()).toEqual({ sub: "/" });
    },
  );

  test("content that is not what was announced is not installed, and leaves nothing behind", async () => {
    const copy = uploaded({ "a.txt": "one" });
    const source: CopySource = {
      ...codebase({ "a.txt": "two" }),
      async *content() {
        yield Buffer.from("half of tw");
      },
    };
    const [written] = await copy.write([outcome("modified", "/a.txt")], source);
    expect(written).toMatchObject({ applied: false, conflict: false });
    expect(onDisk()).toEqual({ "a.txt": "one" });
  });

  test("an abort leaves no directory half made", async () => {
    const copy = uploaded({});
    const abort = new AbortController();
    const source: CopySource = {
      ...codebase({ dir: null, "dir/a.txt": "a" }),
      // biome-ignore lint/correctness/useYield: it is aborted before there is anything to give
      async *content() {
        abort.abort(new Error("enough"));
        abort.signal.throwIfAborted();
      },
    };
    const outcomes = [outcome("added", "/dir", { type: "directory" }), outcome("added", "/dir/a.txt")];
    await expect(copy.write(outcomes, source, { signal: abort.signal })).rejects.toThrow("enough");
    expect(onDisk()).toEqual({ dir: "/" });
    expect(statSync(join(top, "dir")).mode & 0o777).toBe(0o755);
  });

  test("one that cannot be fetched does not stop the others; an abort does", async () => {
    const copy = uploaded({ "a.txt": "one", "b.txt": "one" });
    const abort = new AbortController();
    const source = codebase({ "a.txt": "two", "b.txt": "two" });
    const broken: CopySource = {
      ...source,
      content(path) {
        if (path === "a.txt") throw new Error("the line is dead");
        return source.content(path);
      },
    };
    const outcomes = [outcome("modified", "/a.txt"), outcome("modified", "/b.txt")];
    expect(brief(await copy.write(outcomes, broken))).toEqual([
      ["/a.txt", false, false, `it could not be written here: the line is dead${HAS}`],
      ["/b.txt", true, false, ""],
    ]);
    abort.abort(new Error("enough"));
    await expect(copy.write([outcome("modified", "/a.txt")], source, { signal: abort.signal })).rejects.toThrow(
      "enough",
    );
    expect(onDisk()).toEqual({ "a.txt": "one", "b.txt": "two" });
  });
});

describe("a server that contradicts itself", () => {
  test("what was changed and is not in the codebase is not deleted here, and what was deleted and is there not written", async () => {
    const copy = uploaded({ "a.txt": "one", "b.txt": "one" });
    const outcomes = [outcome("modified", "/a.txt"), outcome("deleted", "/b.txt")];
    expect(brief(await copy.write(outcomes, codebase({ "b.txt": "two" })))).toEqual([
      ["/a.txt", false, false, "the codebase is not as the server told"],
      ["/b.txt", false, false, "the codebase is not as the server told"],
    ]);
    expect(onDisk()).toEqual({ "a.txt": "one", "b.txt": "one" });
  });

  test("a file moved away from a path that has another one now", async () => {
    const copy = uploaded({ "a.txt": "one" });
    const outcomes = [outcome("modified", "/a.txt"), outcome("renamed", "/b.txt", { oldPath: "/a.txt" })];
    expect(await copy.write(outcomes, codebase({ "a.txt": "two", "b.txt": "one" }))).toEqual(outcomes);
    expect(onDisk()).toEqual({ "a.txt": "two", "b.txt": "one" });
  });
});

describe("a rehearsal", () => {
  test("tells what would be left alone, and touches nothing", async () => {
    const copy = uploaded({
      "a.txt": "one",
      "b.txt": "one",
      dir: null,
      "dir/a": "a",
      thing: "file",
      full: null,
      "full/x": "x",
    });
    writeFileSync(join(top, "b.txt"), "mine");
    writeFileSync(join(top, "full/mine"), "mine");
    const before = onDisk();
    const outcomes = [
      outcome("modified", "/a.txt"),
      outcome("modified", "/b.txt"),
      outcome("deleted", "/dir/a"),
      outcome("deleted", "/dir", { type: "directory" }),
      outcome("modified", "/thing", { type: "directory" }),
      outcome("added", "/thing/deep", { type: "directory" }),
      outcome("added", "/thing/deep/in.txt"),
      outcome("deleted", "/full/x"),
      outcome("deleted", "/full", { type: "directory" }),
      outcome("added", "/../outside"),
    ];
    const told = await copy.rehearse(outcomes);
    expect(brief(told).filter(([, applied]) => applied === false)).toEqual([
      ["/b.txt", false, true, "it changed here since the upload"],
      ["/full", false, true, "the directory holds what the sandbox did not delete, or did not see"],
      ["/../outside", false, false, "it is no path of this directory"],
    ]);
    expect(onDisk()).toEqual(before);
    // What was only rehearsed is not taken for done.
    expect(brief(await copy.write([outcome("modified", "/a.txt")], codebase({ "a.txt": "two" })))).toEqual([
      ["/a.txt", true, false, ""],
    ]);
  });
});
