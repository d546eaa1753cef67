import { readFileSync, readlinkSync } from "node:fs";
import { lstat, mkdtemp, readdir, readFile, realpath, rename, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../filesystem/remove-tree.ts";

const OWNER_FILE = "owner.json";

export interface TemporaryHomeOptions {
  /** How its name begins; what killed processes left under the same one is removed. */
  readonly prefix: string;
  /** Where it is made; default: the system's place for temporary files. */
  readonly parent?: string | undefined;
}

/**
 * A directory (0700) that lives as long as the process: `<parent>/<prefix>XXXXXX`, with `owner.json` and whatever is put
 * beside it. One whose process was killed goes when the next one is made.
 */
export class TemporaryHome implements AsyncDisposable {
  /** Absolute, without symlinks. */
  readonly path: string;
  #isKept = false;

  private constructor(path: string) {
    this.path = path;
  }

  static async create({ prefix, parent = tmpdir() }: TemporaryHomeOptions): Promise<TemporaryHome> {
    await removeAbandoned(parent, prefix);
    const path = await mkdtemp(join(await realpath(parent), prefix));
    // By rename, so that whoever looks for abandoned ones sees either no owner yet or the whole truth.
    await writeFile(join(path, `${OWNER_FILE}.new`), JSON.stringify(thisProcess()));
    await rename(join(path, `${OWNER_FILE}.new`), join(path, OWNER_FILE));
    return new TemporaryHome(path);
  }

  /** From now on it stays where it is. Nothing is written for that, so that a full disk does not stand in the way. */
  async keep(): Promise<void> {
    if (this.#isKept) return;
    this.#isKept = true;
    // What has no owner is nobody's to clear away.
    await unlink(join(this.path, OWNER_FILE));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isKept) await removeTree(this.path);
  }
}

/**
 * Who made one, precise enough to know later that it is gone: a process id means something only within one boot and
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
async function removeAbandoned(parent: string, prefix: string): Promise<void> {
  const here = thisProcess();
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const home = join(parent, name);
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
