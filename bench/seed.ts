import { appendFile, link, mkdir, open, rename, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Identity, type PathList, run } from "./client.ts";

/**
 * The tree that every target shows:
 *
 *   repo/      a git work tree; src/modNN/partNN/fileNN.txt are 10,000 small files, one in a hundred holds the needle;
 *              one file is modified and one is untracked
 *   tree.tar   half of those files
 *   big.bin    one large file
 */
export interface Seed {
  readonly directory: string;
  readonly bigMiB: number;
  /** What a right answer looks like. */
  readonly expected: {
    readonly files: number;
    readonly directories: number;
    readonly bytes: number;
    readonly needles: number;
    readonly changes: number;
  };
}

export const MODULES = 20;
const PARTS = 10;
export const FILES_PER_PART = 50;
export const FILES_PER_MODULE = PARTS * FILES_PER_PART;
export const TAR_MODULES = 10;
export const NEEDLE = "agentfense_needle";
const FILE_NAME = "file%02d.txt";
// Older than the index of git, which would otherwise look into each file to be sure that it did not change.
const OLD = new Date(1_600_000_000_000);
const FILES_PER_NEEDLE = 100;
const UNPINNED = { pinned: false } as const;

/** The names of the 10,000 files, seen from a root that shows the seed. */
export function smallFiles(root: string): PathList {
  const directories = moduleNames(MODULES).flatMap((module) =>
    numbered("part", PARTS).map((part) => join(root, "repo/src", module, part)),
  );
  return { directories, files: FILES_PER_PART, name: FILE_NAME };
}

export function moduleNames(count: number): string[] {
  return numbered("mod", count);
}

export async function plantSeed(directory: string, bigMiB: number, owner: Identity | undefined): Promise<Seed> {
  await mkdir(directory, { recursive: true });
  const random = randomNumbers(20_240_229);
  const { directories } = smallFiles(directory);
  let files = 0;
  let bytes = 0;
  for (const part of directories) {
    await mkdir(part, { recursive: true });
    for (const name of numbered("file", FILES_PER_PART)) {
      const text = prose(random, 200 + Math.floor(random() * 3800), files % FILES_PER_NEEDLE === 0);
      await writeFile(join(part, `${name}.txt`), text);
      await utimes(join(part, `${name}.txt`), OLD, OLD);
      files += 1;
      bytes += text.length;
    }
  }
  const tar = moduleNames(TAR_MODULES).map((module) => `src/${module}`);
  await run(["tar", "cf", join(directory, "tree.tar"), "-C", join(directory, "repo"), ...tar], UNPINNED);
  await writeBigFile(join(directory, "big.bin"), bigMiB);
  await own(directory, owner);

  // After the change of owner, because git remembers the change time of each file.
  await commitAll(join(directory, "repo"));
  const change = "changed\n";
  await appendFile(join(directory, "repo/src/mod03/part03/file03.txt"), change);
  await writeFile(join(directory, "repo/untracked.txt"), "new\n");
  await own(join(directory, "repo/.git"), owner);
  return {
    directory,
    bigMiB,
    expected: {
      files,
      directories: 1 + MODULES + MODULES * PARTS,
      bytes: bytes + change.length,
      needles: files / FILES_PER_NEEDLE,
      changes: 2,
    },
  };
}

/** A second tree for a target without a delta. The large files, which no workload changes, are shared. */
export async function copySeed(seed: Seed, directory: string): Promise<void> {
  // Under a temporary name first, so that a broken copy is never taken for a whole one.
  const unfinished = `${directory}.part`;
  await mkdir(unfinished, { recursive: true });
  await run(["cp", "-a", join(seed.directory, "repo"), unfinished], UNPINNED);
  for (const file of ["tree.tar", "big.bin"]) await link(join(seed.directory, file), join(unfinished, file));
  await rename(unfinished, directory);
  // The copies have other inode numbers; git looks into all of them once and then remembers.
  await run(["git", "-C", join(directory, "repo"), "status", "--porcelain"], UNPINNED);
}

async function commitAll(repository: string): Promise<void> {
  const git = ["git", "-C", repository, "-c", "user.name=bench", "-c", "user.email=bench@example.org"];
  const commands = [
    ["init", "--quiet"],
    ["config", "gc.auto", "0"],
    ["config", "core.untrackedCache", "false"],
    ["config", "core.preloadIndex", "false"],
    ["add", "--all"],
    ["commit", "--quiet", "--message", "seed"],
  ];
  for (const command of commands) await run([...git, ...command], UNPINNED);
}

async function own(path: string, owner: Identity | undefined): Promise<void> {
  if (owner !== undefined) await run(["chown", "-R", `${owner.uid}:${owner.gid}`, path], UNPINNED);
}

async function writeBigFile(path: string, mebibytes: number): Promise<void> {
  const random = randomNumbers(7);
  const block = Buffer.from(Uint32Array.from({ length: 2 ** 18 }, () => random() * 2 ** 32).buffer);
  await using file = await open(path, "w");
  for (let i = 0; i < mebibytes; i += 1) {
    block.writeUInt32LE(i);
    await file.write(block);
  }
}

function prose(random: () => number, size: number, needle: boolean): string {
  const words = ["alpha", "beta", "gamma", "delta", "return", "const", "value", "index", "path", "node"];
  const line = () => Array.from({ length: 9 }, () => words[Math.floor(random() * words.length)]).join(" ");
  const lines: string[] = needle ? [NEEDLE] : [];
  for (let length = 0; length < size; ) {
    lines.push(line());
    length += lines.at(-1)!.length + 1;
  }
  return `${lines.join("\n")}\n`;
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(2, "0")}`);
}

/** The same numbers between 0 and 1 in every run (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
