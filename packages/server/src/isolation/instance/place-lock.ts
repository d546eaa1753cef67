import { closeSync, constants, openSync } from "node:fs";
import { syscalls } from "@agentfense/fuse";

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
