import { readFileSync, readlinkSync } from "node:fs";
import { lstat, mkdtemp, readdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "@agentfense/server";

const PREFIX = "agentfense-delta-";
const OWNER_FILE = "owner.json";

/** A delta that lives as long as the process: `<tmp>/agentfense-delta-XXXXXX/{owner.json,delta/}`. */
export class TemporaryDelta implements AsyncDisposable {
  readonly path: string;
  readonly #home: string;

  private constructor(home: string) {
    this.#home = home;
    this.path = join(home, "delta");
  }

  static async create(): Promise<TemporaryDelta> {
    await removeAbandoned();
    const home = await mkdtemp(join(await realpath(tmpdir()), PREFIX));
    // By rename, so that whoever looks for abandoned deltas sees either no owner yet or the whole truth.
    await writeFile(join(home, `${OWNER_FILE}.new`), JSON.stringify(thisProcess()));
    await rename(join(home, `${OWNER_FILE}.new`), join(home, OWNER_FILE));
    return new TemporaryDelta(home);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeTree(this.#home);
  }
}

/**
 * Who made a delta, precise enough to know later that it is gone: a process id means something only within one boot and
 * one PID namespace, and only together with the time the process started.
 */
interface Owner {
  readonly pid: number;
  readonly startedAt: string;
  readonly namespace: string;
  readonly boot: string;
}

function thisProcess(): Owner {
  return {
    pid: process.pid,
    startedAt: startTimeOf(process.pid) ?? "",
    namespace: readlinkSync("/proc/self/ns/pid"),
    boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
  };
}

/** Field 22 of /proc/PID/stat, counted after the command name, which can hold anything up to the last parenthesis. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** Removes what killed processes left. Only our own user's; only when the owner is certainly gone. */
async function removeAbandoned(): Promise<void> {
  const here = thisProcess();
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const home = join(tmpdir(), name);
    const entry = await lstat(home).catch(() => undefined);
    if (!entry?.isDirectory() || entry.uid !== process.geteuid?.()) continue;
    const owner = await readOwner(home);
    if (owner !== undefined && isGone(owner, here)) await removeTree(home).catch(() => undefined);
  }
}

function isGone(owner: Owner, here: Owner): boolean {
  if (owner.boot !== here.boot) return true;
  return owner.namespace === here.namespace && startTimeOf(owner.pid) !== owner.startedAt;
}

async function readOwner(home: string): Promise<Owner | undefined> {
  try {
    return JSON.parse(await readFile(join(home, OWNER_FILE), "utf8")) as Owner;
  } catch {
    return undefined;
  }
}
