import { readdirSync, readFileSync } from "node:fs";

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** Since the machine was started: a number that is used again is another process. */
  readonly startedAt: string;
  readonly words: readonly string[];
}

/** The processes of Chromium below this one, as "number@start". */
export function chromiumProcesses(): string[] {
  return chromiums().map(({ pid, startedAt }) => `${pid}@${startedAt}`);
}

/** The one that started the others. */
export function browserProcess(): number {
  const all = chromiums();
  const pids = new Set(all.map(({ pid }) => pid));
  // Numbers start anew when they are used up, so the smallest need not be the first.
  return all.find(({ parent }) => !pids.has(parent))?.pid ?? Number.NaN;
}

/** Where the browsers on this machine have their profile and all else. */
export function browserHomes(): string[] {
  const homes = chromiums().flatMap(
    ({ words }) => /--user-data-dir=(\/\S*\/agentfense-browser-\w+)\//.exec(words.join(" ")) ?? [],
  );
  return [...new Set(homes.filter((home) => home.startsWith("/")))];
}

export function isAlive(process: string): boolean {
  const [pid, startedAt] = process.split("@");
  return readProcess(Number(pid))?.startedAt === startedAt;
}

function chromiums(): Process[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const all = new Map(pids.flatMap((pid) => readProcess(Number(pid)) ?? []).map((found) => [found.pid, found]));
  const isOurs = (pid: number): boolean => pid === process.pid || (pid > 1 && isOurs(all.get(pid)?.parent ?? 0));
  return [...all.values()].filter(({ pid, words }) => /\/chromium$/.test(words[0] ?? "") && isOurs(pid));
}

/** Undefined if there is none, or only what its parent has not asked for yet. */
function readProcess(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name is in parentheses and may have some itself; fields are counted behind it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z") return undefined;
    // Chromium writes its own command line, with spaces.
    const words = readFileSync(`/proc/${pid}/cmdline`, "latin1").split(/[\0 ]/);
    return { pid, parent: Number(fields[1]), startedAt: fields[19] ?? "", words };
  } catch {
    return undefined;
  }
}
