import { join } from "node:path";
import type { Task } from "./client.ts";
import { FILES_PER_MODULE, moduleNames, NEEDLE, type Seed, smallFiles, TAR_MODULES } from "./seed.ts";

/** One row of the tables. */
export interface Workload {
  readonly id: string;
  readonly label: string;
  /** Whether each sample begins with a new mount. */
  readonly remount: boolean;
  readonly writes: boolean;
  /** The work that is timed. */
  readonly task: (at: Place) => Task;
  /** Work right before it that is not, so that the mount knows what it would know in ordinary use. */
  readonly prelude?: (at: Place) => Task;
  /** The check value of a right answer. */
  readonly expected: number;
  /** The output is large and consists of few files: removed after each sample, not at the end of the run. */
  readonly discard?: boolean;
}

export interface Place {
  /** The directory that shows the seed. */
  readonly root: string;
  /** Where this sample may write; it exists when the workload is one that writes. */
  readonly scratch: string;
}

const CREATED_FILES = 5_000;
const COPIED_MODULES = 5;
const RANDOM_READS = 20_000;
const MIB = 2 ** 20;

/** What is measured, in the order of measurement: first what reads, at the very end what deletes. */
export function workloads(seed: Seed, writeMiB: number): Workload[] {
  const { files, directories, bytes, needles, changes } = seed.expected;
  const span = Math.min(256, seed.bigMiB) * MIB;
  // ls -lR prints for each directory its name, a total and, between two of them, an empty line.
  const listed = files + directories - 1 + 3 * directories - 1;
  return [
    ...coldAndWarm("find", "find, 10k files", files + directories, tool("find", "src")),
    ...coldAndWarm("ls", "ls -lR, 10k files", listed, tool("ls", "-lR", "src")),
    ...coldAndWarm("grep", "grep -r, 10k files", needles, tool("grep", "-r", NEEDLE, "src")),
    // It writes what it learnt to its index.
    ...coldAndWarm("git-status", "git status, 10k files", changes, tool("git", "status", "--porcelain")).map(
      (workload) => ({ ...workload, writes: true }),
    ),
    ...coldAndWarm("stat", "stat of 10k files", bytes, ({ root }) => ({ task: "stat", paths: smallFiles(root) })),
    ...coldAndWarm("open-read", "open, read, close of 10k files", bytes, ({ root }) => ({
      task: "open_read",
      paths: smallFiles(root),
    })),
    ...coldAndWarm("read", `read ${seed.bigMiB} MiB by 1 MiB`, seed.bigMiB * MIB, ({ root }) => ({
      task: "read",
      file: join(root, "big.bin"),
    })),
    ...coldAndWarm("random-read", "20k random reads of 4 KiB", RANDOM_READS * 4096, ({ root }) => ({
      task: "random_read",
      file: join(root, "big.bin"),
      span,
      count: RANDOM_READS,
    })),
    {
      ...writing("tar-x", "tar x, 5k files", TAR_MODULES * FILES_PER_MODULE),
      prelude: ({ root }) => ({ task: "read", file: join(root, "tree.tar") }),
      task: ({ root, scratch }) => ({
        task: "command",
        argv: ["tar", "xf", join(root, "tree.tar")],
        cwd: scratch,
        count: scratch,
      }),
    },
    {
      ...writing("cp-r", "cp -r, 2,500 files", COPIED_MODULES * FILES_PER_MODULE),
      prelude: tool("grep", "-r", NEEDLE, ...copiedModules()),
      task: ({ root, scratch }) => ({
        task: "command",
        argv: ["cp", "-r", ...copiedModules(), scratch],
        cwd: join(root, "repo"),
        count: scratch,
      }),
    },
    {
      ...writing("write-1m", `write ${writeMiB} MiB by 1 MiB`, writeMiB * MIB),
      task: ({ scratch }) => ({ task: "write", file: join(scratch, "out"), block: MIB, count: writeMiB }),
      discard: true,
    },
    {
      ...writing("write-4k", "write 80 MiB by 4 KiB", 20_000 * 4096),
      task: ({ scratch }) => ({ task: "write", file: join(scratch, "out"), block: 4096, count: 20_000 }),
      discard: true,
    },
    {
      ...writing("create", "create 5k files", CREATED_FILES),
      task: create,
    },
    {
      ...writing("rename", "rename 5k files", CREATED_FILES),
      prelude: create,
      task: ({ scratch }) => ({ task: "rename", directory: join(scratch, "files") }),
    },
    {
      // ext4 steps over each inode number freed in the last minutes whenever it makes a file, which then costs 20 times
      // as much. So nothing is timed after this that makes files, and what the others made goes at the end of the run.
      ...writing("delete", "delete 5k files", CREATED_FILES),
      prelude: create,
      task: ({ scratch }) => ({ task: "delete", directory: join(scratch, "files") }),
    },
  ];
}

export function workloadNames(): string[] {
  const expected = { files: 0, directories: 0, bytes: 0, needles: 0, changes: 0 };
  return workloads({ directory: "", bigMiB: 0, expected }, 0).map(({ id }) => id);
}

/** Cold: the mount is new. Warm: the same work was done a moment ago, so that no time limit of a cache has passed. */
function coldAndWarm(id: string, label: string, expected: number, task: (at: Place) => Task): Workload[] {
  return [
    { id: `${id}-cold`, label: `${label}, cold`, remount: true, writes: false, task, expected },
    { id: `${id}-warm`, label: `${label}, warm`, remount: false, writes: false, task, prelude: task, expected },
  ];
}

/** On a new mount, because a daemon that has seen many files may be slow for that reason alone. */
function writing(id: string, label: string, expected: number) {
  return { id, label, expected, remount: true, writes: true } as const;
}

function tool(...argv: string[]): (at: Place) => Task {
  return ({ root }) => ({ task: "command", argv, cwd: join(root, "repo") });
}

function create({ scratch }: Place): Task {
  return { task: "create", directory: join(scratch, "files"), count: CREATED_FILES };
}

function copiedModules(): string[] {
  return moduleNames(COPIED_MODULES).map((module) => `src/${module}`);
}
