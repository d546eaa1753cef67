import { closeSync, constants, openSync } from "node:fs";
import { lstat, mkdir, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { syscalls } from "@agentfense/fuse";
import { IsolationError } from "../backend/isolation-error.ts";

/**
 * A directory of this user's that a sandbox is to have as its home, made if absent: its real path. Refused is one that others
 * can write or that is reached by a link at its end, and one that has this user's own home or one of the other places in it, or
 * lies in one of these: the agent may write all that is in it.
 */
export async function homeDirectory(given: string, apartFrom: readonly string[]): Promise<string> {
  const asked = resolve(given);
  const parent = await realpath(dirname(asked)).catch(() => undefined);
  if (parent === undefined) throw unusable(given, `${dirname(asked)} does not exist`);
  const path = join(parent, basename(asked));
  const own = await realpath(homedir()).catch(() => homedir());
  if (isWithin(own, path)) throw unusable(given, "it is your own home, or has that in it");
  for (const place of apartFrom) {
    const other = await realpath(place).catch(() => place);
    if (isWithin(path, other)) throw unusable(given, `it lies in ${other}`);
    if (isWithin(other, path)) throw unusable(given, `${other} lies in it`);
  }
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw unusable(given, error.message);
  });
  const entry = await lstat(path);
  if (!entry.isDirectory()) throw unusable(given, "it is not a directory");
  if (entry.uid !== process.geteuid?.() || (entry.mode & 0o022) !== 0) {
    throw unusable(given, "it does not belong to you alone");
  }
  return path;
}

/** Takes a home for one sandbox, among all processes of this machine; whatever ends the process gives it back. */
export function lockHome(path: string): Disposable {
  try {
    return lockPlace(path, "directory", "the home");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error; // it could not even be opened
    throw new IsolationError("HOME_IN_USE", `another sandbox runs with the home ${path}`, {
      hint: "wait until it is stopped, or use another home",
      cause: error,
    });
  }
}

/** Whether it is the place, or somewhere below it. */
export function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(place === "/" ? place : `${place}/`);
}

function unusable(given: string, reason: string): IsolationError {
  return new IsolationError("INVALID_ARGUMENT", `${given} cannot be a home: ${reason}`);
}

/**
 * Takes a file (made if need be) or a directory for this process alone. The lock ends when it is disposed of, and with the
 * process, whatever kills that. `what` names the place in the complaint that another server has it.
 */
export function lockPlace(path: string, kind: "file" | "directory", what: string): Disposable {
  const { O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants;
  const flags = kind === "directory" ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT | O_NOFOLLOW;
  const fd = openSync(path, flags, 0o600);
  if (syscalls.tryLock(fd) < 0) {
    closeSync(fd);
    throw new Error(`${what} is in use by another server`);
  }
  return { [Symbol.dispose]: () => closeSync(fd) };
}
