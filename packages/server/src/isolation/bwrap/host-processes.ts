import { readdirSync, readFileSync } from "node:fs";
import { processes, syscalls } from "@agentfense/fuse";

// The host's view of the processes in a box, through /proc. Reading /proc is memory to memory: it does not block.

/** A process that cannot be mistaken for a later one with the same number. */
export interface HostProcess {
  readonly pid: number;
  /** Since the host booted, in ticks. */
  readonly startTicks: number;
}

/** /proc reports times in these (USER_HZ), the same on every architecture we run on. */
export const TICK_MS = 10;

/** Undefined when there is no such process, or only its corpse. One whose first thread has ended lives on in the others. */
export function findProcess(pid: number): HostProcess | undefined {
  const stat = statOf(`/proc/${pid}`);
  if (stat === undefined || ("ZX".includes(stat.state) && stat.threads <= 1)) return undefined;
  return { pid, startTicks: stat.startTicks };
}

/** Whether all its threads were stopped by a signal or a tracer, or are dead. */
export function isStill(pid: number): boolean {
  return threadsOf(pid).every((thread) => "TtZX".includes(stateOf(pid, thread)));
}

/** Whether what is left of it waits where no signal reaches it, a parent in vfork for one; a signal is then taken on the way out. */
export function isOutOfReach(pid: number): boolean {
  return threadsOf(pid).every((thread) => "DTtZX".includes(stateOf(pid, thread)));
}

function stateOf(pid: number, thread: string): string {
  return statOf(`/proc/${pid}/task/${thread}`)?.state ?? "X";
}

/** The threads of a process by their numbers; none when the process is gone. */
export function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

const PF_EXITING = 4;

/** It is gone, or on its way out: a box's process 1 takes all others along first. */
export function isEnding(process: HostProcess): boolean {
  const stat = statOf(`/proc/${process.pid}`);
  return stat?.startTicks !== process.startTicks || stat.state === "Z" || stat.isExiting;
}

export interface Stat {
  readonly state: string;
  /** It runs no code of its own any more. */
  readonly isExiting: boolean;
  /** What it used of a CPU. */
  readonly cpuTicks: number;
  /** How many threads the process has, with those that have ended and were not collected. */
  readonly threads: number;
  readonly startTicks: number;
}

/** The state of a process or a thread, by its directory in /proc; undefined when it is gone. */
export function statOf(directory: string): Stat | undefined {
  const stat = read(`${directory}/stat`);
  // The name in parentheses may hold anything, a parenthesis too. What is behind it counts from 0, where proc(5) counts from 3.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields === undefined) return undefined;
  return {
    state: fields[0] ?? "X",
    isExiting: (Number(fields[6]) & PF_EXITING) !== 0,
    cpuTicks: Number(fields[11]) + Number(fields[12]),
    threads: Number(fields[17]),
    startTicks: Number(fields[19]),
  };
}

export function isSameProcess(process: HostProcess): boolean {
  return findProcess(process.pid)?.startTicks === process.startTicks;
}

const INNER_PID = /^NSpid:\s.*?(\d+)\s*$/m;

/** The number it has in its own pid namespace. */
export function innerPid(pid: number): number | undefined {
  const inner = INNER_PID.exec(read(`/proc/${pid}/status`) ?? "")?.[1];
  return inner === undefined ? undefined : Number(inner);
}

/** Whether it is the first process of a pid namespace and belongs to this user. */
export function isBoxInit(pid: number, uid: number): boolean {
  const status = read(`/proc/${pid}/status`);
  const inner = INNER_PID.exec(status ?? "")?.[1];
  const real = /^Uid:\s+(\d+)/m.exec(status ?? "")?.[1];
  return inner === "1" && real === String(uid);
}

export function childrenOf(pid: number): HostProcess[] {
  return threadsOf(pid)
    .flatMap((thread) => (read(`/proc/${pid}/task/${thread}/children`) ?? "").split(" "))
    .flatMap((child) => (child === "" ? [] : (findProcess(Number(child)) ?? [])));
}

/** With the processes themselves, parents first; where there are more than `most`, not all of them. */
export function withDescendants(roots: readonly HostProcess[], most = Number.POSITIVE_INFINITY): HostProcess[] {
  const all = [...roots];
  for (let i = 0; i < all.length && all.length < most; i++) {
    const process = all[i];
    if (process !== undefined) all.push(...childrenOf(process.pid));
  }
  return all;
}

export function commandLine(pid: number): string[] {
  return (read(`/proc/${pid}/cmdline`) ?? "").split("\0").slice(0, -1);
}

/**
 * Holds on to the process first and looks who it is then, so that a number that was used again is never hit. A descriptor of
 * the process, or -1.
 */
export function holdProcess(target: HostProcess): number {
  const pidfd = processes.pidfdOpen(target.pid);
  if (pidfd < 0) return -1;
  if (isSameProcess(target)) return pidfd;
  syscalls.close(pidfd);
  return -1;
}

export function signalProcess(target: HostProcess, signal: number): boolean {
  const pidfd = holdProcess(target);
  if (pidfd < 0) return false;
  const code = processes.pidfdSendSignal(pidfd, signal);
  syscalls.close(pidfd);
  return code === 0;
}

/** Resolves when the process is gone, or after a while; a box's process 1 goes after all others of the box. */
export async function waitUntilGone(process: HostProcess, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let delay = 0; isSameProcess(process); delay = Math.min(50, delay + 1)) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
  return true;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

/** More than any look is wrong by: the machine slept, which performance.now() does not count. */
const JUMP_MS = 1_000;

interface Offset {
  /** In performance.now(), since when it is known. */
  readonly sinceMs: number;
  offsetMs: number;
}

/**
 * Turns times of performance.now() into the ticks since boot in which /proc gives the start of a process. /proc/uptime is
 * cut to a tick, and time goes by until it was read, so each look at it finds an offset that is too small; the largest of
 * several looks is close.
 */
export class BootClock {
  /** One for each time the machine slept, in order. */
  readonly #offsets: [Offset, ...Offset[]] = [
    { sinceMs: Number.NEGATIVE_INFINITY, offsetMs: Number.NEGATIVE_INFINITY },
  ];
  readonly #read: () => { readonly uptimeMs: number; readonly nowMs: number };

  /** `read` must not tell an uptime that is later than its now. */
  constructor(read: () => { readonly uptimeMs: number; readonly nowMs: number } = readClocks) {
    this.#read = read;
  }

  /** Looks several times, spread over a tick. */
  async settle(): Promise<void> {
    for (let i = 0; i < 8; i++) {
      this.look();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  look(): void {
    const { uptimeMs, nowMs } = this.#read();
    const found = uptimeMs - nowMs;
    const last = this.#offsets.at(-1)!;
    const isFirst = last.offsetMs === Number.NEGATIVE_INFINITY;
    if (!isFirst && found > last.offsetMs + JUMP_MS) this.#offsets.push({ sinceMs: nowMs, offsetMs: found });
    else last.offsetMs = Math.max(last.offsetMs, found);
  }

  /** Never later than the truth: a process that started at that moment or after it has at least this many ticks. */
  ticksAt(performanceMs: number): number {
    this.look();
    const { offsetMs } = this.#offsets.findLast(({ sinceMs }) => sinceMs <= performanceMs) ?? this.#offsets[0];
    return Math.floor((performanceMs + offsetMs) / TICK_MS);
  }
}

/** Now comes second: whatever holds us up between the two must not make the past look later. */
function readClocks(): { uptimeMs: number; nowMs: number } {
  const uptimeMs = Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]) * 1000;
  return { uptimeMs, nowMs: performance.now() };
}
