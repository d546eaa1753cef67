import type { Rule } from "@agentfense/permission";
import { afterAll, beforeAll, describe } from "vitest";
import { type As, identityOf, reasonAgainst } from "../../support/identity.ts";
import { openWorkspace, type TestWorkspace, type WorkspaceOptions } from "../../support/workspace.ts";
import { type Caller, type DirectoryEntry, startCaller } from "./caller.ts";

/** Everything may be written: what is left is POSIX. */
export const EVERYTHING_WRITABLE: readonly Rule[] = [{ pattern: "/**", permission: "write" }];

export interface Mounted {
  readonly workspace: TestWorkspace;
  /** Makes system calls as the user of the mount, in its root: paths can be relative. */
  readonly fs: Caller;
  /** Another process in the root of the mount, as this user, ended after the tests; as the mount's own by default. */
  another(uid?: number, gid?: number, groups?: readonly number[]): Promise<Caller>;
}

export type MountOptions = Omit<WorkspaceOptions, "rules"> & { readonly rules?: readonly Rule[] };

/** A group of tests on one mount. Each test keeps to names of its own. */
export function describeMounted(title: string, options: MountOptions, tests: (mounted: Mounted) => void): void {
  const as: As = options.as ?? "root";
  const reason = reasonAgainst(as);
  describe.skipIf(reason !== undefined)(`${title}${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
    let workspace: TestWorkspace | undefined;
    const callers: Caller[] = [];
    const start = async (uid?: number, gid?: number, groups?: readonly number[]) => {
      const own = as === "user" ? identityOf("user") : {};
      const caller = await startCaller(uid === undefined ? own : { uid, gid: gid ?? uid, groups: groups ?? [] });
      callers.push(caller);
      await caller.chdir(present(workspace).mountPoint);
      return caller;
    };
    beforeAll(async () => {
      workspace = await openWorkspace({ rules: EVERYTHING_WRITABLE, ...options });
      await start();
    });
    afterAll(async () => {
      for (const caller of callers) await caller[Symbol.asyncDispose]();
      await workspace?.[Symbol.asyncDispose]();
    });
    tests({
      get workspace() {
        return present(workspace);
      },
      get fs() {
        return present(callers[0]);
      },
      another: start,
    });
  });
}

/** The same group twice: on root's mount and on an ordinary user's. */
export function describeMountedByAnyone(title: string, options: MountOptions, tests: (mounted: Mounted) => void): void {
  for (const as of ["root", "user"] as const) describeMounted(`${title}, as ${as}`, { ...options, as }, tests);
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the mount exists only while its tests run");
  return value;
}

/** Writes a whole file. */
export async function write(fs: Caller, path: string, content: string, mode = 0o644): Promise<void> {
  const fd = await fs.open(path, "O_WRONLY|O_CREAT|O_TRUNC", mode);
  await fs.write(fd, content);
  await fs.close(fd);
}

/** Reads a whole small file. */
export async function read(fs: Caller, path: string): Promise<string> {
  const fd = await fs.open(path, "O_RDONLY");
  try {
    return await fs.read(fd, 1 << 20);
  } finally {
    await fs.close(fd);
  }
}

/** Appends to a file that exists. */
export async function append(fs: Caller, path: string, text: string): Promise<void> {
  const fd = await fs.open(path, "O_WRONLY|O_APPEND");
  await fs.write(fd, text);
  await fs.close(fd);
}

/** A whole directory through getdents64, as the kernel gives it. */
export async function listEntries(fs: Caller, path: string, bufferSize?: number): Promise<DirectoryEntry[]> {
  const fd = await fs.open(path, "O_RDONLY|O_DIRECTORY");
  const entries = await readEntries(fs, fd, bufferSize);
  await fs.close(fd);
  return entries;
}

/** What is left to read of an open directory. */
export async function readEntries(fs: Caller, fd: number, bufferSize = 32768): Promise<DirectoryEntry[]> {
  const entries: DirectoryEntry[] = [];
  let part = await fs.getdents(fd, bufferSize);
  for (; part.length > 0; part = await fs.getdents(fd, bufferSize)) entries.push(...part);
  return entries;
}
