import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { randomTree } from "../conformance/model/lower-tree.ts";
import { OperationSource, type Step } from "../conformance/model/operations.ts";
import { plainCopyOf } from "../conformance/model/plain-copy.ts";
import { Random } from "../conformance/model/random.ts";
import { TwinRun } from "../conformance/model/twin-run.ts";
import { type ListedEntry, type Listing, startCaller } from "../conformance/posix/caller.ts";
import { EVERYTHING_WRITABLE } from "../conformance/posix/mounted.ts";
import { Daemon } from "../support/daemon-link.ts";
import { aWhile } from "../support/eventually.ts";
import { rounds } from "../support/rounds.ts";
import { type Tree, treeState, writeTree } from "../support/tree.ts";

const LARGE_FILES = Array.from({ length: 6 }, (_, index) => `large${index}`);
const LARGE_SIZE = 8 * 1024 * 1024;

/** Where the steps of a round come from, and when the daemon is killed among them. */
interface Workload {
  readonly codebase: (random: Random) => Tree;
  readonly steps: (random: Random, codebase: Listing) => { next(): readonly Step[]; succeeded(step: Step): void };
  readonly longestMs: number;
}

const WORKLOADS: Record<string, Workload> = {
  "copy-up of large files": {
    codebase: () => Object.fromEntries(LARGE_FILES.map((name) => [name, name.repeat(LARGE_SIZE / name.length)])),
    steps: (random) => ({ next: () => copyUpOfLargeFile(random), succeeded: () => undefined }),
    longestMs: 120,
  },
  "random changes": {
    codebase: randomTree,
    steps: (random, codebase) => new OperationSource(random, Object.keys(codebase)),
    longestMs: 400,
  },
  "removing directories and making them again": {
    codebase: () =>
      Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`d${index}`, { x: "x", y: "y", sub: { z: "z" } }])),
    steps: (random) => ({ next: () => replaceDirectory(`d${random.below(10)}`), succeeded: () => undefined }),
    longestMs: 150,
  },
};

describe("a daemon killed at any moment leaves every path as it was or as it was to become", () => {
  for (const [title, workload] of Object.entries(WORKLOADS)) {
    test(`during ${title}`, async () => {
      for (let round = 0; round < rounds(2); round++) await crashRound(workload, 1 + Math.floor(Math.random() * 1e9));
    });
  }
});

async function crashRound(workload: Workload, seed: number): Promise<void> {
  const random = new Random(seed);
  await using place = layers(workload.codebase(random));
  await using plain = plainCopyOf(place.lower);
  await using onPlain = await startCaller();
  await using onMount = await startCaller();
  const before = treeState(place.lower);

  const daemon = await place.mount();
  const codebase = await onPlain.listing(plain.path);
  const directories = Object.keys(codebase).filter((path) => codebase[path]?.type === "directory");
  const sides = { mount: { root: place.mountPoint, caller: onMount }, plain: { root: plain.path, caller: onPlain } };
  // Times are not compared here: those of directories move before the entry that moves them is in place.
  const run = new TwinRun(sides, directories, "0");
  const killed = aWhile(random.between(5, workload.longestMs)).then(() => daemon.kill());
  const lost = await stepsUntilLost(run, workload.steps(random, codebase), `seed ${seed}`);
  await killed;

  const old = await onPlain.listing(plain.path);
  await run.takeOnPlain(lost);
  const anew = await onPlain.listing(plain.path);
  await using _second = await place.mount();
  await using afterwards = await startCaller();
  const found = await afterwards.listing(place.mountPoint);
  expect(halves(old, anew, found), `seed ${seed}, killed during ${JSON.stringify(lost).slice(0, 300)}`).toEqual([]);
  const work = join(place.delta, "work");
  expect(existsSync(work) ? readdirSync(work) : []).toEqual([]);

  // What is there can be worked with: nothing left over keeps a directory from being removed.
  expect(await afterwards.run(["find", place.mountPoint, "-mindepth", "1", "-delete"])).toMatchObject({
    code: 0,
    stderr: "",
  });
  expect(await afterwards.listdir(place.mountPoint)).toEqual([]);
  expect(treeState(place.lower)).toEqual(before);
}

async function stepsUntilLost(run: TwinRun, source: ReturnType<Workload["steps"]>, about: string): Promise<Step> {
  for (;;) {
    for (const step of source.next()) {
      const taken = await run.take(step);
      if (!("result" in taken)) expect.fail(`${about}: ${JSON.stringify(taken).slice(0, 1000)}`);
      if (taken.result === "lost") return step;
      if (taken.result === "succeeded") source.succeeded(step);
    }
  }
}

/** Paths that are neither as before the step nor as after it. */
function halves(old: Listing, anew: Listing, found: Listing): string[] {
  const paths = new Set([old, anew, found].flatMap((listing) => Object.keys(listing)));
  return [...paths].flatMap((path) => {
    const [before, after, now] = [old[path], anew[path], found[path]].map(shown);
    // A rename that had made the new name and not yet removed the old one has one file with two links.
    const unlinked = now?.replace('"nlink":2', '"nlink":1');
    return [before, after].some((state) => state === now || state === unlinked)
      ? []
      : [`${path}: ${now}; before ${before}, after ${after}`];
  });
}

function shown(entry: ListedEntry | undefined): string {
  return entry === undefined ? "absent" : JSON.stringify(entry, Object.keys(entry).sort());
}

function copyUpOfLargeFile(random: Random): readonly Step[] {
  const path = { path: random.pick(LARGE_FILES) };
  const slot = { slot: 0 };
  return random.pick<readonly Step[]>([
    [{ name: "chmod", args: [path, random.pick([0o600, 0o640, 0o755])] }],
    [
      { name: "open", args: [path, "O_WRONLY|O_APPEND", 0], opens: 0 },
      { name: "write", args: [slot, random.text(1000)] },
      { name: "close", args: [slot] },
    ],
    [{ name: "rename", args: [path, { path: random.pick(LARGE_FILES) }] }],
    [{ name: "truncate", args: [path, random.between(1, LARGE_SIZE)] }],
    [{ name: "link", args: [path, { path: `link${random.below(5)}` }] }],
  ]);
}

/** Empties and removes a directory of the codebase, makes it again, with other content, and removes that. */
function replaceDirectory(directory: string): readonly Step[] {
  const at = (name: string) => ({ path: `${directory}/${name}` });
  return [
    { name: "unlink", args: [at("x")] },
    { name: "unlink", args: [at("y")] },
    { name: "unlink", args: [at("sub/z")] },
    { name: "rmdir", args: [at("sub")] },
    { name: "rmdir", args: [{ path: directory }] },
    { name: "mkdir", args: [{ path: directory }, 0o755] },
    { name: "mkdir", args: [at("sub"), 0o700] },
    { name: "symlink", args: ["nowhere", at("x")] },
    { name: "rename", args: [at("sub"), at("y")] },
    { name: "rename", args: [{ path: directory }, { path: `${directory}-moved` }] },
    { name: "unlink", args: [{ path: `${directory}-moved/x` }] },
    { name: "rmdir", args: [{ path: `${directory}-moved/y` }] },
    { name: "rename", args: [{ path: `${directory}-moved` }, { path: directory }] },
  ];
}

/** A codebase, a delta and a mount point that outlive their daemons. */
function layers(codebase: Tree) {
  const base = mkdtempSync(join(tmpdir(), "agentfense-crash-"));
  const [lower, delta, mountPoint] = [join(base, "lower"), join(base, "delta"), join(base, "mnt")];
  mkdirSync(lower);
  mkdirSync(mountPoint);
  writeTree(lower, codebase);
  const daemons: Daemon[] = [];
  const detach = () => execFileSync("sh", ["-c", 'while umount -l "$0" 2>/dev/null; do :; done', mountPoint]);
  return {
    lower,
    delta,
    mountPoint,
    /** Takes away what a killed daemon left, and mounts. */
    async mount(): Promise<Daemon> {
      detach();
      const daemon = Daemon.start("root");
      daemons.push(daemon);
      await daemon.mount({ mountPoint, lowers: [lower], delta, rules: EVERYTHING_WRITABLE }, () => undefined);
      return daemon;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const daemon of daemons) await daemon.kill();
      detach();
      rmSync(base, { recursive: true, force: true });
    },
  };
}
