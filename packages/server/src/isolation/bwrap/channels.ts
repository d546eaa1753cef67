import { readdir, readFile, readlink } from "node:fs/promises";
import type { ChannelState } from "../backend/backend.ts";
import type { HostProcess } from "./host-processes.ts";

const CLOSE_ON_EXEC = 0o2000000;

/** Where shells put away what they redirect. */
const FIRST_PUT_AWAY = 10;

/**
 * Looks at a shell's channels, pipes that are named as /proc names them (`pipe:[123]`). A subshell has the copies that its shell put
 * away, which it closes before it becomes a program (zsh does so by itself); any other descriptor of a channel was made on purpose.
 *
 * @param others all processes that could have one, without the shell
 */
export async function channelState(
  shell: HostProcess,
  others: readonly HostProcess[],
  channels: ReadonlySet<string>,
): Promise<Omit<ChannelState, "bytesUnread">> {
  const program = others.length === 0 ? "" : await linkOf(`/proc/${shell.pid}/exe`);
  let strangers = 0;
  // A shell that is gone has no channels, and no subshells that could be told from others.
  if (program !== "") for (const { pid } of others) if (await isStranger(pid, program, channels)) strangers += 1;
  return { strangers, bytesRead: await bytesReadBy(shell.pid) };
}

async function isStranger(pid: number, program: string, channels: ReadonlySet<string>): Promise<boolean> {
  // First who it is, then what it has: a subshell that becomes a program meanwhile has less, never more.
  const isSubshell = (await linkOf(`/proc/${pid}/exe`)) === program;
  for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
    const isHeld = async (): Promise<boolean> => channels.has(await linkOf(`/proc/${pid}/fd/${fd}`));
    if (!(await isHeld())) continue;
    const isInherited = isSubshell && Number(fd) >= FIRST_PUT_AWAY && (await closesOnExec(pid, fd, program));
    if (!isInherited && (await isHeld())) return true;
  }
  return false;
}

async function closesOnExec(pid: number, fd: string, program: string): Promise<boolean> {
  if (program.endsWith("/zsh")) return true;
  const flags = await fieldOf(`/proc/${pid}/fdinfo/${fd}`, "flags");
  return flags === undefined || (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
}

/** Of its one thread: the count of the whole process includes the children that it has waited for. */
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
