import { lstatSync, mkdtempSync, readdirSync, rmSync, type Stats, statfsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { rounds } from "../../support/rounds.ts";
import { openWorkspace, type TestWorkspace } from "../../support/workspace.ts";
import { type Caller, SystemCallError, startCaller } from "../posix/caller.ts";
import { EVERYTHING_WRITABLE } from "../posix/mounted.ts";
import { Random } from "./random.ts";

const STEPS = 400;
const BLOCK = 4096;
const QUOTA = 2 << 20;
/** How far a single request may go beyond the quota: a write has at most so much. */
const OVERSHOOT = 1 << 20;
/** A disk keeps its own notes on a file in blocks of the file, and makes them when it likes. */
const NOTES = 16 * BLOCK;

const TMPFS = 0x01021994;
const NAMES = ["a", "b", "c", "d", "big", "small", "sparse"];
const FINE = new Set(["EDQUOT", "ENOENT", "EEXIST", "EOPNOTSUPP", "ESTALE", "ENOSPC", "EINVAL", "EPERM"]);

/** The account that the quota keeps step by step is what a fresh look at the delta finds, whatever was done to files. */
describe("the quota's account", () => {
  const tmpfs = statfsSync("/dev/shm").type === TMPFS ? undefined : "/dev/shm is no tmpfs";
  test.skipIf(tmpfs !== undefined).for(seeds())(
    `equals what the delta holds after every step, on a tmpfs${tmpfs ? ` (skipped: ${tmpfs})` : ""}, seed %i`,
    (seed) => checkedRun(seed, { place: "/dev/shm", notes: 0 }),
  );
  test.for(seeds())("is never far from what the delta holds, on a disk, seed %i", (seed) =>
    checkedRun(seed, { place: undefined, notes: NOTES }),
  );
});

function seeds(): number[] {
  const asked = Number(process.env.AGENTFENSE_SEED);
  if (Number.isInteger(asked) && asked > 0) return [asked];
  return Array.from({ length: rounds(1) }, () => 1 + Math.floor(Math.random() * 1e9));
}

async function checkedRun(seed: number, where: { place: string | undefined; notes: number }): Promise<void> {
  console.log(`quota's account over ${STEPS} operations: repeat with AGENTFENSE_SEED=${seed}`);
  await using workspace = await openIn(where.place);
  await using fs = await startCaller();
  await fs.chdir(workspace.mountPoint);
  const random = new Random(seed);
  const handles = new Set<number>();
  const ofDelta = new Set<number>();
  const taken: string[] = [];
  const check = async (): Promise<void> => {
    const { used, total } = await accountOf(fs);
    await noteInodes(fs, handles, workspace, ofDelta);
    const found = heldByDelta(workspace) + (await heldByHandles(fs, handles, ofDelta));
    const context = `seed ${seed}, after\n${taken.slice(-30).join("\n")}`;
    expect(found, context).toBeLessThanOrEqual(QUOTA + OVERSHOOT + where.notes);
    const isFull = used === total;
    expect(Math.abs(isFull ? Math.min(found, total) - used : found - used), context).toBeLessThanOrEqual(where.notes);
  };
  for (let step = 0; step < STEPS; step++) {
    taken.push(await takeStep(random, fs, handles));
    await check();
  }
  for (const fd of handles) await fs.close(fd);
  handles.clear();
  taken.push("closed everything");
  await check();
  await fs.chdir("/");
  await workspace.remount();
  await fs.chdir(workspace.mountPoint);
  taken.push("remounted");
  await check();
  for (const name of await fs.listdir(".")) await fs.unlink(name);
  expect((await accountOf(fs)).used, `seed ${seed}, with nothing left`).toBe(0);
  await fs.chdir("/");
}

async function openIn(place: string | undefined): Promise<TestWorkspace & AsyncDisposable> {
  const before = process.env.TMPDIR;
  const directory = place === undefined ? undefined : mkdtempSync(join(place, "agentfense-quota-"));
  if (directory !== undefined) process.env.TMPDIR = directory;
  try {
    const workspace = await openWorkspace({
      lower: { big: "b".repeat(600_000), small: "small", sparse: "s".repeat(5000) },
      quota: { bytes: QUOTA },
      rules: EVERYTHING_WRITABLE,
    });
    const dispose = workspace[Symbol.asyncDispose].bind(workspace);
    return Object.assign(workspace, {
      [Symbol.asyncDispose]: async () => {
        await dispose();
        if (directory !== undefined) rmSync(directory, { recursive: true });
      },
    });
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

type Action = (random: Random, fs: Caller, handles: Set<number>) => Promise<unknown>;

const size = (random: Random) => random.pick([0, 1, 100, BLOCK, 5000, 70_000, 300_000, 900_000]);
const anyOf = (random: Random, handles: Set<number>): number => (handles.size > 0 ? random.pick([...handles]) : -1);

const ACTIONS: Readonly<Record<string, readonly [weight: number, act: Action]>> = {
  open: [10, open("O_RDWR|O_CREAT")],
  "open and truncate": [5, open("O_RDWR|O_CREAT|O_TRUNC")],
  "open for reading": [2, open("O_RDONLY")],
  "open by O_PATH": [4, open("O_PATH")],
  tmpfile: [2, async (_random, fs, handles) => handles.add(await fs.open(".", "O_TMPFILE|O_RDWR"))],
  close: [8, close],
  write: [12, (random, fs, handles) => fs.pwrite(anyOf(random, handles), random.text(size(random)), size(random))],
  ftruncate: [6, (random, fs, handles) => fs.ftruncate(anyOf(random, handles), size(random))],
  truncate: [5, (random, fs) => fs.truncate(random.pick(NAMES), size(random))],
  "truncate through a descriptor": [
    2,
    (random, fs, handles) => fs.truncate(`/proc/self/fd/${anyOf(random, handles)}`, size(random)),
  ],
  reopen: [
    3,
    async (random, fs, handles) => handles.add(await fs.open(`/proc/self/fd/${anyOf(random, handles)}`, "O_RDWR")),
  ],
  allocate: [12, allocate],
  copy: [
    4,
    (random, fs, handles) =>
      fs.copyFileRange(anyOf(random, handles), anyOf(random, handles), size(random), size(random), size(random)),
  ],
  link: [3, (random, fs) => fs.link(random.pick(NAMES), random.pick(NAMES))],
  "link a tmpfile": [2, (random, fs, handles) => fs.linkDescriptor(anyOf(random, handles), random.pick(NAMES))],
  rename: [4, (random, fs) => fs.rename(random.pick(NAMES), random.pick(NAMES))],
  unlink: [8, (random, fs) => fs.unlink(random.pick(NAMES))],
  attribute: [2, (random, fs) => fs.setxattr(random.pick(NAMES), "user.note", random.text(random.pick([10, 3000])))],
};

function open(flags: string): Action {
  return async (random, fs, handles) => {
    if (handles.size > 12) await close(random, fs, handles);
    handles.add(await fs.open(random.pick(NAMES), flags));
  };
}

async function close(random: Random, fs: Caller, handles: Set<number>): Promise<void> {
  const fd = anyOf(random, handles);
  handles.delete(fd);
  if (fd >= 0) await fs.close(fd);
}

function allocate(random: Random, fs: Caller, handles: Set<number>): Promise<unknown> {
  const modes = ["", "KEEP_SIZE", "KEEP_SIZE", "KEEP_SIZE|PUNCH_HOLE", "ZERO_RANGE", "ZERO_RANGE|KEEP_SIZE"];
  return fs.fallocate(anyOf(random, handles), random.pick(modes), size(random), 1 + size(random));
}

async function takeStep(random: Random, fs: Caller, handles: Set<number>): Promise<string> {
  const weights = Object.fromEntries(Object.entries(ACTIONS).map(([name, [weight]]) => [name, weight]));
  const name = random.weighted(weights);
  try {
    await ACTIONS[name]![1](random, fs, handles);
    return name;
  } catch (error) {
    if (!(error instanceof SystemCallError)) throw error;
    // A descriptor that is not open for this, or is none, is the fault of the dice.
    if (!FINE.has(error.code) && error.code !== "EBADF") throw error;
    return `${name}: ${error.code}`;
  }
}

async function accountOf(fs: Caller): Promise<{ used: number; total: number }> {
  const { blocks, available, blockSize } = await fs.statfs(".");
  return { used: (blocks - available) * blockSize, total: blocks * blockSize };
}

function chargeOf({ size: bytes, blocks }: Pick<Stats, "size" | "blocks">): number {
  return Math.max(Math.ceil(bytes / BLOCK) * BLOCK, blocks * 512);
}

function heldByDelta(workspace: TestWorkspace): number {
  const tree = join(workspace.delta, "tree");
  const charges = new Map<number, number>();
  for (const name of readdirSync(tree)) {
    if (name.startsWith(".wh.")) continue;
    const stat = lstatSync(join(tree, name));
    charges.set(stat.ino, chargeOf(stat));
  }
  return [...charges.values()].reduce((sum, charge) => sum + charge, 0);
}

/** A file that never was in the delta is the codebase's, and takes no space here. One that can be written to is in the delta. */
async function noteInodes(
  fs: Caller,
  handles: ReadonlySet<number>,
  workspace: TestWorkspace,
  ofDelta: Set<number>,
): Promise<void> {
  const names = readdirSync(join(workspace.delta, "tree")).filter((name) => !name.startsWith(".wh."));
  for (const name of names) ofDelta.add((await fs.lstat(name)).ino);
  for (const fd of handles) if (await isWritable(fs, fd)) ofDelta.add((await fs.fstat(fd)).ino);
}

/** Files that have no name any more and are open; an O_PATH descriptor does not hold any space. */
async function heldByHandles(fs: Caller, handles: ReadonlySet<number>, ofDelta: ReadonlySet<number>): Promise<number> {
  const charges = new Map<number, number>();
  for (const fd of handles) {
    if (await isPath(fs, fd)) continue;
    const stat = await fs.fstat(fd);
    if (stat.nlink === 0 && ofDelta.has(stat.ino)) charges.set(stat.ino, chargeOf(stat));
  }
  return [...charges.values()].reduce((sum, charge) => sum + charge, 0);
}

async function isPath(fs: Caller, fd: number): Promise<boolean> {
  return !(await succeeds(fs.lseek(fd, 0, "SEEK_CUR")));
}

/** To write nothing changes nothing, and tells whether one could. */
async function isWritable(fs: Caller, fd: number): Promise<boolean> {
  return await succeeds(fs.pwrite(fd, "", 0));
}

async function succeeds(call: Promise<unknown>): Promise<boolean> {
  return await call.then(
    () => true,
    () => false,
  );
}
