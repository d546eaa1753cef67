import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { syscalls } from "@agentfense/fuse";
import { IsolationError } from "../backend/isolation-error.ts";

// A running server (or one call of the command line) is an instance, with a directory of its own:
//
//   <state>/<instance>/lock        held with flock for as long as the instance lives
//   <state>/<instance>/runtimes    the backends it uses, a word each
//   <state>/<instance>/<sandbox>/<n>   mount points
//   <state>/<instance>/<sandbox>/<file>   what a container is shown, while it is there
//
// An instance whose lock can be taken is dead, whatever killed it; whoever takes the lock cleans up after it. Names with
// a leading dot are not finished yet: an instance appears under its name only when it holds its lock.

const NAME = /^[0-9a-f]{16}$/;
/** An unfinished instance that is this old was killed in the making. */
const UNFINISHED_MS = 60_000;

export class Instance {
  readonly name: string;
  /** Below it are the mount points. */
  readonly directory: string;
  readonly #state: string;
  readonly #lock: number;
  readonly #runtimes = new Set<string>();

  private constructor(state: string, name: string, lock: number) {
    this.name = name;
    this.#state = state;
    this.directory = join(state, name);
    this.#lock = lock;
  }

  static async open(options: { stateDirectory?: string | undefined } = {}): Promise<Instance> {
    const state = await openStateDirectory(options.stateDirectory);
    const name = randomBytes(8).toString("hex");
    const unfinished = join(state, `.${name}`);
    await mkdir(unfinished);
    await chmod(unfinished, 0o711); // the box's user passes through on its way to the mount
    await writeFile(join(unfinished, "runtimes"), "", { mode: 0o600 });
    const lock = openSync(join(unfinished, "lock"), "wx", 0o600);
    if (syscalls.tryLock(lock) < 0) throw new Error("cannot lock a file that was just made");
    await rename(unfinished, join(state, name));
    return new Instance(state, name, lock);
  }

  /** Notes a backend before it is used, so that whoever cleans up after this instance has that backend too. */
  async willUse(runtime: string): Promise<void> {
    this.#runtimes.add(runtime);
    await writeFile(join(this.directory, "runtimes"), [...this.#runtimes].join(" "), { mode: 0o600 });
  }

  /** Where a sandbox has its mount. */
  mountPointOf(sandbox: string): string {
    return join(this.directory, sandbox, "mount");
  }

  /** Makes the mount point of one sandbox, which nobody but the box's user (and root) can reach. */
  async makeMountPoint(sandbox: string, owner: { readonly uid: number; readonly gid: number }): Promise<void> {
    const home = join(this.directory, sandbox);
    await mkdir(home, { mode: 0o700 });
    await mkdir(this.mountPointOf(sandbox), { mode: 0o711 });
    if (process.geteuid?.() === 0) await chown(home, owner.uid, owner.gid);
  }

  async removeMountPoint(sandbox: string): Promise<void> {
    await removeSandboxDirectory(join(this.directory, sandbox));
  }

  /**
   * Takes over the instances that died and use none but these runtimes; `clean` gets their names and mount points. Their
   * directories go away afterwards. Directories are only ever removed empty: nothing is deleted through a live mount. Gives
   * what could not be removed, which is left for the next instance and keeps nobody from starting.
   */
  async adoptDead(
    runtimes: ReadonlySet<string>,
    clean: (names: readonly string[], mountPoints: readonly string[]) => Promise<void>,
  ): Promise<readonly unknown[]> {
    const dead: { name: string; directory: string; lock: number }[] = [];
    try {
      for (const directory of await instancesBeside(this.#state)) {
        const name = basename(directory);
        if (name.startsWith(".")) await removeUnfinished(directory);
        if (!NAME.test(name) || name === this.name) continue;
        const lock = takeLock(join(directory, "lock"));
        if (lock === undefined) continue;
        const used = await readFile(join(directory, "runtimes"), "utf8").catch(() => "");
        const isOurs = used.split(" ").every((runtime) => runtime === "" || runtimes.has(runtime));
        if (isOurs) dead.push({ name, directory, lock });
        else closeSync(lock);
      }
      if (dead.length === 0) return [];
      const homes = await Promise.all(dead.map(({ directory }) => subdirectories(directory)));
      const points = await Promise.all(homes.flat().map((home) => subdirectories(home)));
      await clean(
        dead.map(({ name }) => name),
        points.flat(),
      );
      const removals = dead.map(async ({ directory }, index) => {
        for (const home of homes[index]!) await removeSandboxDirectory(home);
        await removeInstanceDirectory(directory);
      });
      const removed = await Promise.allSettled(removals);
      return removed.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    } finally {
      for (const { lock } of dead) closeSync(lock);
    }
  }

  async close(): Promise<void> {
    await removeInstanceDirectory(this.directory);
    closeSync(this.#lock);
  }
}

/**
 * Where instances keep their mount points: given, or /run/agentfense for root and $XDG_RUNTIME_DIR/agentfense for others.
 * It must be ours: somebody else's directory could move under us. A user without a runtime directory has one in the place for
 * temporary files, under a name that nobody can foresee, and so take before us.
 */
export async function openStateDirectory(given?: string): Promise<string> {
  const directory = given ?? (await fixedStateDirectory());
  if (directory === undefined)
    return (await temporaryStates(tmpdir()))[0] ?? mkdtemp(join(tmpdir(), temporaryPrefix()));
  await mkdir(directory, { recursive: true, mode: 0o711 });
  if (await isOurs(directory)) return directory;
  throw new IsolationError("RUNTIME_UNAVAILABLE", "the state directory is not a directory of this user alone", {
    hint: "choose another one, or make it owned by this user and writable by nobody else",
  });
}

async function fixedStateDirectory(): Promise<string | undefined> {
  if (process.geteuid?.() === 0) return "/run/agentfense";
  const runtime = process.env.XDG_RUNTIME_DIR ?? "";
  // After su it may still be that of the user we were.
  return isAbsolute(runtime) && (await isOurs(runtime)) ? join(runtime, "agentfense") : undefined;
}

function temporaryPrefix(): string {
  return `agentfense-${process.geteuid?.()}-`;
}

async function temporaryStates(parent: string): Promise<string[]> {
  const names = (await readdir(parent).catch(() => [])).filter((name) => name.startsWith(temporaryPrefix())).sort();
  const states: string[] = [];
  for (const name of names) if (await isOurs(join(parent, name))) states.push(join(parent, name));
  return states;
}

async function isOurs(directory: string): Promise<boolean> {
  const entry = await lstat(directory).catch(() => undefined);
  if (!entry?.isDirectory()) return false;
  return entry.uid === process.geteuid?.() && (entry.mode & 0o022) === 0;
}

/** Two instances that began at the same moment may each have made a temporary state directory. */
async function instancesBeside(state: string): Promise<string[]> {
  const isTemporary = basename(state).startsWith(temporaryPrefix());
  const states = isTemporary ? await temporaryStates(dirname(state)) : [state];
  const names = await Promise.all(states.map((each) => readdir(each)));
  return states.flatMap((each, index) => names[index]!.map((name) => join(each, name)));
}

function takeLock(path: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return undefined; // gone: somebody else cleaned up
  }
  if (syscalls.tryLock(fd) >= 0) return fd;
  closeSync(fd);
  return undefined;
}

async function removeUnfinished(path: string): Promise<void> {
  const entry = await stat(path).catch(() => undefined);
  if (entry !== undefined && Date.now() - entry.mtimeMs > UNFINISHED_MS) await removeInstanceDirectory(path);
}

async function subdirectories(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
}

async function removeSandboxDirectory(home: string): Promise<void> {
  for (const entry of await readdir(home, { withFileTypes: true }).catch(() => [])) {
    const path = join(home, entry.name);
    await (entry.isDirectory() ? rmdir(path) : rm(path)).catch(unlessGone);
  }
  await rmdir(home).catch(unlessGone);
}

async function removeInstanceDirectory(directory: string): Promise<void> {
  await rm(join(directory, "runtimes"), { force: true });
  await rm(join(directory, "lock"), { force: true });
  await rmdir(directory).catch(unlessGone);
}

function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
