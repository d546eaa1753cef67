import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Content of files by path; all of it is bytes, as latin1. */
export interface GitEntry {
  readonly mode: "100644" | "100755" | "120000";
  readonly content: string;
}

export type GitTree = ReadonlyMap<string, GitEntry>;

export interface GitCase {
  readonly base: GitTree;
  readonly ours: GitTree;
  readonly theirs: GitTree;
}

export interface GitMerge {
  readonly tree: GitTree;
  /** Paths of conflicts. */
  readonly conflicts: ReadonlySet<string>;
}

/** git on its own, without anybody's settings. */
const ENVIRONMENT = { PATH: process.env.PATH, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };

/** What merging always did; newer versions ask the settings. */
const AS_EVER = ["-c", "diff.algorithm=histogram"];

/** What git merges the cases into, one process that takes them in, one that merges, one that reads. */
export function mergeByGit(cases: readonly GitCase[]): GitMerge[] {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-git-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const git = (args: readonly string[], input = ""): string =>
    execFileSync("git", ["-C", directory, ...AS_EVER, ...args], {
      env: ENVIRONMENT,
      input: Buffer.from(input, "latin1"),
      maxBuffer: 1 << 30,
      encoding: "latin1",
    });
  git(["init", "-q", "--bare"]);
  git(["fast-import", "--quiet"], cases.map(streamOf).join(""));
  const requests = cases.map((_, index) => `ours-${index} theirs-${index}\n`).join("");
  const answers = readAnswers(
    git(["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", "--stdin"], requests),
  );
  const trees = readTrees(
    git,
    answers.map(({ tree }) => tree),
  );
  return answers.map(({ conflicts }, index) => ({ tree: trees[index]!, conflicts }));
}

/** For `git fast-import`: the three sides as commits. */
function streamOf({ base, ours, theirs }: GitCase, index: number): string {
  const commit = (name: string, tree: GitTree, parent?: string): string =>
    [
      `commit refs/heads/${name}-${index}\ncommitter a <a@b> 0 +0000\ndata 0\n`,
      parent === undefined ? "" : `from refs/heads/${parent}-${index}\n`,
      "deleteall\n",
      ...[...tree].map(([path, { mode, content }]) => `M ${mode} inline ${path}\ndata ${content.length}\n${content}\n`),
      "\n",
    ].join("");
  return commit("base", base) + commit("ours", ours, "base") + commit("theirs", theirs, "base");
}

/** "STATUS NUL TREE NUL (PATH NUL)* NUL" for each merge. */
function readAnswers(output: string): { tree: string; conflicts: ReadonlySet<string> }[] {
  const fields = output.split("\0");
  const answers: { tree: string; conflicts: ReadonlySet<string> }[] = [];
  for (let at = 0; at + 1 < fields.length; ) {
    at += 1; // whether it was clean, which the paths say too
    const tree = fields[at++]!;
    const conflicts = new Set<string>();
    while (fields[at] !== undefined && fields[at] !== "") conflicts.add(fields[at++]!);
    at += 1;
    answers.push({ tree, conflicts });
  }
  return answers;
}

function readTrees(git: (args: readonly string[], input?: string) => string, trees: readonly string[]): GitTree[] {
  const contents = new Map<string, string>();
  const listed = new Map<string, { path: string; mode: string; object: string }[]>();
  const objects = new Map<string, string>();
  const read = (names: readonly string[]): void => {
    const output = git(["cat-file", "--batch"], [...new Set(names)].map((name) => `${name}\n`).join(""));
    for (let at = 0; at < output.length; ) {
      const end = output.indexOf("\n", at);
      const [name, , size] = output.slice(at, end).split(" ") as [string, string, string];
      objects.set(name, output.slice(end + 1, end + 1 + Number(size)));
      at = end + 2 + Number(size);
    }
  };
  // Level by level, so that a few processes read them all.
  for (let wanted = [...new Set(trees)]; wanted.length > 0; ) {
    read(wanted);
    const below: string[] = [];
    for (const tree of wanted) {
      const rows = [...objects.get(tree)!.matchAll(/(\d+) ([^\0]+)\0([\s\S]{20})/g)].map(([, mode, path, id]) => ({
        mode: mode!,
        path: path!,
        object: Buffer.from(id!, "latin1").toString("hex"),
      }));
      listed.set(tree, rows);
      below.push(
        ...rows.filter(({ mode, object }) => mode === "40000" && !listed.has(object)).map(({ object }) => object),
      );
    }
    wanted = [...new Set(below)];
  }
  const files = [...listed.values()].flat().filter(({ mode }) => mode !== "40000");
  if (files.length > 0) read(files.map(({ object }) => object));
  for (const { object } of files) contents.set(object, objects.get(object)!);
  const flat = (tree: string, above: string): [string, GitEntry][] =>
    listed
      .get(tree)!
      .flatMap(({ path, mode, object }): [string, GitEntry][] =>
        mode === "40000"
          ? flat(object, `${above}${path}/`)
          : [[above + path, { mode: mode as GitEntry["mode"], content: contents.get(object)! }]],
      );
  return trees.map((tree) => new Map(flat(tree, "")));
}
