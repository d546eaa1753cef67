import { readdir, readFile, readlink } from "node:fs/promises";
import { processes } from "@agentfense/fuse";
import type { ChannelState } from "../backend/backend.ts";
import { countStrangers, type Holders, type Suspect } from "../backend/holders.ts";
import { type HostProcess, statOf, threadsOf } from "./host-processes.ts";

const CLOSE_ON_EXEC = 0o2000000;

/** Where shells put away what they redirect. */
const FIRST_PUT_AWAY = 10;

/**
 * Looks at a shell's channels, pipes that are named as /proc names them (`pipe:[123]`). A subshell has the copies that its shell put
 * away, which it closes before it becomes a program (zsh does so by itself); any other descriptor of a channel was made on purpose.
 *
 * @param findOthers all processes that could have one, without the shell; it is asked again as long as somebody is suspected
 */
export async function channelState(
  shell: HostProcess,
  findOthers: () => readonly HostProcess[],
  channels: ReadonlySet<string>,
): Promise<Omit<ChannelState, "bytesUnread">> {
  const strangers = await countStrangers(() => holders(shell, findOthers(), channels));
  return { strangers, bytesRead: await bytesReadBy(shell.pid) };
}

async function holders(
  shell: HostProcess,
  others: readonly HostProcess[],
  channels: ReadonlySet<string>,
): Promise<Holders> {
  const program = others.length === 0 ? "" : await linkOf(`/proc/${shell.pid}/exe`);
  let strangers = 0;
  const suspects: Suspect[] = [];
  // A shell that is gone has no channels, and no subshells that could be told from others.
  if (program !== "") {
    for (const { pid } of others) {
      for (const thread of tablesOf(pid)) {
        const found = await lookAt(thread, program, channels);
        if (found === "stranger") strangers += 1;
        else if (found !== undefined) suspects.push(found);
      }
    }
  }
  return { strangers, suspects };
}

/** One thread, as its directory in /proc, for each table of descriptors that the process has. */
function tablesOf(pid: number): string[] {
  const [first, ...rest] = threadsOf(pid);
  const others = rest.filter((thread) => !processes.shareDescriptors(Number(first), Number(thread)));
  return first === undefined ? [] : [first, ...others].map((thread) => `/proc/${pid}/task/${thread}`);
}

async function lookAt(
  thread: string,
  program: string,
  channels: ReadonlySet<string>,
): Promise<"stranger" | Suspect | undefined> {
  // First who it is, then what it has: a subshell that becomes a program meanwhile has less, never more.
  const isSubshell = (await linkOf(`${thread}/exe`)) === program;
  let mayLetGo = false;
  for (const fd of await readdir(`${thread}/fd`).catch(() => [])) {
    const isHeld = async (): Promise<boolean> => channels.has(await linkOf(`${thread}/fd/${fd}`));
    if (!(await isHeld())) continue;
    const isPutAway = Number(fd) >= FIRST_PUT_AWAY && (await closesOnExec(thread, fd, program));
    if ((isPutAway && isSubshell) || !(await isHeld())) continue;
    if (!isPutAway) return "stranger";
    mayLetGo = true;
  }
  const stat = mayLetGo ? statOf(thread) : undefined;
  if (stat === undefined || stat.isExiting) return undefined;
  return { id: `${thread} ${stat.startTicks}`, isAsleep: !"RD".includes(stat.state), cpuTicks: stat.cpuTicks };
}

async function closesOnExec(thread: string, fd: string, program: string): Promise<boolean> {
  if (program.endsWith("/zsh")) return true;
  const flags = await fieldOf(`${thread}/fdinfo/${fd}`, "flags");
  return flags === undefined || (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
}

/** What a process of one thread has read: the count of the whole process includes the children that it has waited for. */
async function bytesReadBy(pid: number): Promise<number | undefined> {
  const count = await fieldOf(`/proc/${pid}/task/${pid}/io`, "rchar");
  return count === undefined ? undefined : Number(count);
}

async function fieldOf(file: string, name: string): Promise<string | undefined> {
  const text = await readFile(file, "latin1").catch(() => "");
  return new RegExp(`^${name}:\\s*(\\d+)$`, "m").exec(text)?.[1];
}

/** Empty for what is gone. */
function linkOf(path: string): Promise<string> {
  return readlink(path).catch(() => "");
}
