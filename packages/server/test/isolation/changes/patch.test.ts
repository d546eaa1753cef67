import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { deflatePiece, diffChanges, encodeText, literals } from "@agentfense/server/isolation";
import { describe, expect, test } from "vitest";
import { Random } from "../../../../../test/conformance/model/random.ts";
import { rounds } from "../../../../../test/support/rounds.ts";
import { file, link, type Tree } from "../../../../../test/support/tree.ts";
import { type Arrangement, arrange, shape } from "./arrangement.ts";

/** The whole patch, as whoever writes it to a file would have it. */
async function patchOf({ delta, lower }: Arrangement, maxBytes?: number): Promise<Buffer> {
  const spec = { delta, lowers: [lower] };
  const pieces: Buffer[] = [];
  for await (const { text, content } of diffChanges({ ...spec, patch: true, ...(maxBytes && { maxBytes }) })) {
    pieces.push(encodeText(text));
    if (content === undefined) continue;
    const more = literals(content, (one, offset) => deflatePiece(spec, { file: one, offset }));
    for await (const piece of more) pieces.push(Buffer.from(piece));
  }
  return Buffer.concat(pieces);
}

function gitApply(cwd: string, patch: Buffer, ...options: string[]): void {
  if (patch.length > 0) {
    execFileSync("git", ["apply", "--whitespace=nowarn", ...options, "-"], { cwd, input: patch, stdio: "pipe" });
  }
}

/** As git knows a tree: files and links, and of modes only whether the owner may execute. */
function asGitSeesIt(root: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(shape(root))
      .filter(([path, state]) => !path.endsWith("/") && state !== "special")
      .map(([path, state]) => [
        path,
        state.replace(/^[0-7]+/, (mode) => (Number.parseInt(mode, 8) & 0o100 ? "x" : "-")),
      ]),
  );
}

/** Does the work in a mount, and expects git to make the same of the codebase, and to be able to take it back. */
async function expectSame(place: Arrangement, work: (at: (path: string) => string) => void, maxBytes?: number) {
  const before = asGitSeesIt(place.lower);
  let seen = {};
  await place.inMount((at) => {
    work(at);
    seen = asGitSeesIt(at(""));
  });
  const patch = await patchOf(place, maxBytes);
  gitApply(place.lower, patch);
  expect(asGitSeesIt(place.lower)).toEqual(seen);
  gitApply(place.lower, patch, "--reverse");
  expect(asGitSeesIt(place.lower)).toEqual(before);
  return patch.toString("latin1");
}

const NAMES = ["a", "b", "c d", 'q"t', "back\\slash", "t\tb", "l\nf", "ümlaut", "e\udcff", "-dash", "z ", "x"];

describe("a patch of random work in a mount", () => {
  const seeds = Array.from({ length: rounds(6) }, (_, index) => 9100 + index);

  test.for(seeds)("makes git apply the same tree of the codebase, seed %i", async (seed) => {
    const random = new Random(seed);
    // Small enough that many files are too large to be compared, and so are deflated piece by piece.
    await expectSame(
      arrange(randomTree(random, 0)),
      (at) => {
        for (let step = 0; step < 120; step++) takeStep(random, at);
      },
      2000,
    );
  });
});

describe("a patch", () => {
  test("has every file of a removed directory, and of one that became a file or a link", async () => {
    const inside = { a: "1\n", deep: { b: "2\n", empty: "" }, run: file({ content: "#!\n", mode: 0o755 }) };
    const place = arrange({ gone: inside, now: { file: inside, link: inside }, stays: "s\n" });
    const patch = await expectSame(place, (at) => {
      for (const path of ["/gone", "/now/file", "/now/link"]) rmSync(at(path), { recursive: true });
      writeFileSync(at("/now/file"), "a file\n");
      symlinkSync("../stays", at("/now/link"));
    });
    expect(patch.match(/^deleted file mode/gm)).toHaveLength(12);
  });

  test("has what changed its type, only its mode, or only its last line feed, and what is empty", async () => {
    const place = arrange({
      f1: "file\n",
      f2: "file\n",
      f3: "file\n",
      l1: link("f1"),
      l2: link("f1"),
      mode: "m\n",
      shut: "m\n",
      feed: "x\n",
      none: "x",
      emptied: "x\n",
      filled: "",
      gone: "",
    });
    const patch = await expectSame(place, (at) => {
      for (const path of ["/f1", "/f2", "/l1", "/l2", "/gone"]) rmSync(at(path));
      symlinkSync("nowhere", at("/f1"));
      mkdirSync(at("/f2/sub"), { recursive: true });
      writeFileSync(at("/f2/sub/x"), "in\n");
      writeFileSync(at("/l1"), "now a file\n", { mode: 0o755 });
      symlinkSync("f3", at("/l2"));
      chmodSync(at("/mode"), 0o755);
      chmodSync(at("/shut"), 0o600);
      writeFileSync(at("/feed"), "x");
      writeFileSync(at("/none"), "x\n");
      writeFileSync(at("/emptied"), "");
      writeFileSync(at("/filled"), "x\n");
      writeFileSync(at("/new"), "");
    });
    expect(patch).toContain("diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n");
    expect(patch).not.toContain("/shut");
  });

  test("is, but for how content is packed, what git itself prints", async () => {
    const place = arrange({
      "a b": "1\n2\n3\n",
      'q"uo\\te': "x\n",
      "tab\t": "x",
      ümlaut: "x\n",
      gone: { deep: "1\n" },
      mode: "m\n",
      link: link("gone"),
      swap: "file\n",
    });
    await place.inMount((at) => {
      writeFileSync(at("/a b"), "1\ntwo\n3\n");
      for (const name of ['/q"uo\\te', "/tab\t", "/ümlaut"]) writeFileSync(at(name), "y");
      for (const name of ["/gone", "/link", "/swap"]) rmSync(at(name), { recursive: true });
      symlinkSync("a b", at("/link"));
      symlinkSync("a b", at("/swap"));
      chmodSync(at("/mode"), 0o755);
      writeFileSync(at("/empty"), "");
    });
    const patch = (await patchOf(place)).toString("utf8");
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "core.quotePath=false", "-c", "user.name=x", "-c", "user.email=x@y", ...args], {
        cwd: place.lower,
        encoding: "utf8",
      });
    git("init", "-q");
    git("add", "-A");
    git("commit", "-qm", "before");
    gitApply(place.lower, Buffer.from(patch));
    git("add", "-A");
    const sections = (text: string) => text.split(/^(?=diff --git )/m).sort();
    expect(sections(patch)).toEqual(sections(git("diff", "--cached", "--binary", "--full-index", "--no-renames")));
  });

  test("holds of a large file one piece at a time, holes and all", async () => {
    const random = new Random(5);
    const content = Buffer.from(Array.from({ length: 1_500_000 }, () => random.below(256)));
    const place = arrange({ old: "x\n" });
    await place.inMount((at) => {
      writeFileSync(at("/large"), content);
      writeFileSync(at("/old"), content.subarray(0, 1 << 20));
      truncateSync(at("/old"), 3 << 20);
    });
    const spec = { delta: place.delta, lowers: [place.lower] };
    let longest = 0;
    for await (const { text, content: long } of diffChanges({ ...spec, patch: true })) {
      longest = Math.max(longest, text.length);
      if (long === undefined) continue;
      for await (const piece of literals(long, (one, offset) => deflatePiece(spec, { file: one, offset })))
        longest = Math.max(longest, piece.length);
    }
    expect(longest).toBeLessThan(2 << 20);
    gitApply(place.lower, await patchOf(place));
    expect(readFileSync(join(place.lower, "large")).equals(content)).toBe(true);
    expect(lstatSync(join(place.lower, "old")).size).toBe(3 << 20);
  });

  test("is refused rather than mixed of two versions of a file", async () => {
    const place = arrange({}, { tree: { large: "x".repeat(5000) } });
    const spec = { delta: place.delta, lowers: [place.lower] };
    const [diff] = await Array.fromAsync(diffChanges({ ...spec, patch: true, maxBytes: 100 }));
    writeFileSync(join(place.delta, "tree/large"), "y".repeat(5001));
    const pieces = literals(diff!.content!, (one, offset) => deflatePiece(spec, { file: one, offset }));
    await expect(Array.fromAsync(pieces)).rejects.toMatchObject({ code: "DELTA_UNUSABLE" });
  });

  test("leaves out exactly what git refuses to write", async () => {
    const names = [
      ".git",
      ".GIT",
      ".git ",
      ".git.",
      "git~1",
      ".gitx",
      "x.git",
      ".git:s",
      "git~2",
      ".gitignore",
      ".g\\it",
    ];
    for (const name of names) {
      const place = arrange({}, { tree: { [name]: { config: "x\n" } } });
      const plain = Buffer.from(
        `diff --git a/N/config b/N/config\nnew file mode 100644\n--- /dev/null\n+++ b/N/config\n@@ -0,0 +1 @@\n+x\n`
          .replaceAll("a/N/config", JSON.stringify(`a/${name}/config`))
          .replaceAll("b/N/config", JSON.stringify(`b/${name}/config`)),
      );
      let isRefused = false;
      try {
        gitApply(place.lower, plain, "--check");
      } catch {
        isRefused = true;
      }
      expect({ name, isRefused: (await patchOf(place)).length === 0 }).toEqual({ name, isRefused });
    }
  });

  test("of 10,000 changes is read by git as 10,000 changes, and the delta is walked once for them", async () => {
    const base: Record<string, string> = {};
    for (let at = 0; at < 10_000; at++) base[`f${at}`] = `${at}\n`;
    const place = arrange({ gone: base }, { tree: { ".wh.gone": "" } });
    const patch = await patchOf(place);
    // Only reads the patch: writing as many files is the file system's work.
    const counts = execFileSync("git", ["apply", "--numstat", "-"], {
      cwd: place.lower,
      input: patch,
      encoding: "utf8",
    });
    expect(counts.split("\n").filter((line) => line.startsWith("0\t1\tgone/f"))).toHaveLength(10_000);
  });
});

function randomTree(random: Random, depth: number): Tree {
  const entries: Record<string, Tree[string]> = {};
  for (const name of NAMES) {
    const kind = random.weighted({ none: 40, file: 40, directory: depth < 2 ? 15 : 0, link: 5 });
    if (kind === "file") entries[name] = file({ content: randomContent(random), mode: random.pick([0o644, 0o755]) });
    if (kind === "link") entries[name] = link(random.pick(LINK_TARGETS));
    if (kind === "directory") {
      // git does not know empty directories: one that is in the way of a file is for nobody to remove.
      const below = randomTree(random, depth + 1);
      entries[name] = Object.keys(below).length === 0 ? { x: "x\n" } : below;
    }
  }
  return entries;
}

const LINK_TARGETS = ["a", "b/a", "/agentfense-no-such-place/x", "with space", "ümlaut"];

function randomContent(random: Random): string | Buffer {
  const lines = (count: number) => Array.from({ length: count }, () => `line ${random.below(20)}`).join("\n");
  return random.pick<() => string | Buffer>([
    () => "",
    () => lines(random.between(1, 30)),
    () => `${lines(random.between(1, 30))}\n`,
    () => `${lines(400)}\n`,
    () => "no\r\nunix\r\n",
    () => Buffer.from([0x61, 0xfe, 0x0a, 0x62]),
    () => Buffer.from(Array.from({ length: random.between(1, 300) }, () => random.below(256))),
    () => Buffer.from(Array.from({ length: 5000 }, () => random.below(256))),
    () => Buffer.alloc(3000),
  ])();
}

/** One operation on random paths; that it may fail is part of the game. No link that it follows leads out of the mount. */
function takeStep(random: Random, at: (path: string) => string): void {
  const path = (): Buffer =>
    Buffer.concat([
      Buffer.from(at("")),
      ...Array.from({ length: random.between(1, 3) }, () => encodeText(`/${random.pick(NAMES)}`)),
    ]);
  const steps: Record<string, () => void> = {
    write: () => writeFileSync(path(), randomContent(random)),
    fresh: () => writeFileSync(path(), randomContent(random), { flag: "wx", mode: random.pick([0o644, 0o755]) }),
    truncate: () => truncateSync(path(), random.below(20)),
    mkdir: () => mkdirSync(path(), { mode: random.pick([0o755, 0o700]) }),
    remove: () => rmSync(path()),
    removeAll: () => rmSync(path(), { recursive: true }),
    rename: () => renameSync(path(), path()),
    symlink: () => symlinkSync(random.pick(LINK_TARGETS), path()),
    chmod: () => chmodSync(path(), random.pick([0o644, 0o755, 0o600])),
  };
  try {
    steps[random.pick(Object.keys(steps))]!();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined && (error as NodeJS.ErrnoException).code === undefined) {
      throw error;
    }
  }
}
