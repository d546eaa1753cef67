import { existsSync } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type PathList, runClient } from "./client.ts";
import { median } from "./sample.ts";
import { randomNumbers } from "./seed.ts";
import type { TargetKind } from "./targets/table.ts";
import type { Ground, Target } from "./targets/target.ts";

/** What a stat on a new mount costs in a tree of a given size, in microseconds, by target. */
export interface TreeCost {
  readonly files: number;
  readonly microseconds: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, string>>;
}

const FILES_PER_DIRECTORY = 100;
const DIRECTORIES_PER_SAMPLE = 10;
const SMALLEST = 1_000;

export interface TreePlan {
  readonly cache: string;
  readonly directory: string;
  readonly maxFiles: number;
  readonly runs: number;
  readonly pinned: boolean;
  readonly kinds: readonly TargetKind[];
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export async function measureTrees(plan: TreePlan): Promise<TreeCost[]> {
  const costs: TreeCost[] = [];
  for (let files = SMALLEST; files <= plan.maxFiles; files *= 10) {
    const tree = join(plan.cache, `tree-${files}`);
    await growTree(tree, files, plan);
    costs.push(await measureTree(tree, files, plan));
  }
  return costs;
}

async function measureTree(tree: string, files: number, plan: TreePlan): Promise<TreeCost> {
  await using mounted = new AsyncDisposableStack();
  const samples = new Map<Target, number[]>();
  const errors: Record<string, string> = {};
  for (const [i, kind] of plan.kinds.entries()) {
    const target = await kind.make(groundFor(tree, join(plan.directory, `${files}-${i}`), plan.pinned));
    mounted.defer(() => target.stop());
    try {
      await target.start();
      samples.set(target, []);
    } catch (error) {
      errors[target.name] = String(error);
    }
  }
  const random = randomNumbers(files);
  for (let i = 0; i <= plan.runs; i += 1) {
    const chosen = distinctNumbers(DIRECTORIES_PER_SAMPLE, files / FILES_PER_DIRECTORY, random);
    // What lies beneath is in memory before the first target is asked.
    await runClient({ task: "stat", paths: somePaths(tree, chosen) }, { pinned: plan.pinned }, plan.signal);
    for (const [target, seconds] of samples) {
      await target.remount();
      const paths = somePaths(target.root, chosen);
      const answer = await runClient({ task: "stat", paths }, target.client, plan.signal);
      if (i > 0) seconds.push(answer.seconds);
    }
  }
  const perStat = 1e6 / (DIRECTORIES_PER_SAMPLE * FILES_PER_DIRECTORY);
  const microseconds = [...samples].map(([target, seconds]) => [target.name, median(seconds) * perStat] as const);
  return { files, microseconds: Object.fromEntries(microseconds), errors };
}

/** Only read, so a target without a delta can take the tree itself. */
function groundFor(tree: string, directory: string, pinned: boolean): Ground {
  return { tree, copyOfTree: async () => tree, directory, pinned, user: undefined, freshProcess: false };
}

/** The same number of directories and of files in each whatever the size of the tree, so that only the size differs. */
function somePaths(root: string, chosen: readonly number[]): PathList {
  return { directories: chosen.map((i) => join(root, directoryName(i))), files: FILES_PER_DIRECTORY, name: "f%02d" };
}

function distinctNumbers(count: number, limit: number, random: () => number): number[] {
  const numbers = new Set<number>();
  while (numbers.size < count) numbers.add(Math.floor(random() * limit));
  return [...numbers];
}

function directoryName(index: number): string {
  return `t${Math.floor(index / 100)}/d${index}`;
}

/** Makes the tree unless it is there. It stays: a million files take minutes to make and to remove. */
async function growTree(tree: string, files: number, { say, signal }: TreePlan): Promise<void> {
  const complete = join(tree, "complete");
  if (existsSync(complete)) return;
  say(`making a tree of ${files.toLocaleString("en")} files; it is kept for the next run`);
  for (let i = 0; i < files / FILES_PER_DIRECTORY; i += 1) {
    signal.throwIfAborted();
    const directory = join(tree, directoryName(i));
    await mkdir(directory, { recursive: true });
    await Promise.all(
      Array.from({ length: FILES_PER_DIRECTORY }, async (_, k) => {
        const file = await open(join(directory, `f${String(k).padStart(2, "0")}`), "w");
        await file.close();
      }),
    );
  }
  await writeFile(complete, "");
}
