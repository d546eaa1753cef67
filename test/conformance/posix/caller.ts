import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { HANG_MS } from "../../support/eventually.ts";

/** What stat(2) says. Times are nanoseconds in decimal: they do not fit a number. */
export interface Attributes {
  readonly type: EntryType;
  readonly mode: number;
  readonly size: number;
  readonly nlink: number;
  readonly uid: number;
  readonly gid: number;
  readonly ino: number;
  readonly dev: number;
  readonly blocks: number;
  readonly atime: string;
  readonly mtime: string;
  readonly ctime: string;
}

export type EntryType = "file" | "directory" | "symlink" | "fifo" | "socket" | "device";

/** One entry of a recursive listing: what two equal trees have in common. */
export interface ListedEntry {
  /** Instead of all else, for an entry that cannot be looked at. */
  readonly errno?: string;
  readonly type: EntryType;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtime: string;
  /** Of anything but a directory. */
  readonly size?: number;
  readonly nlink?: number;
  /** Of a symbolic link. */
  readonly target?: string;
  /** Of a file; the errno where it cannot be read. */
  readonly sha1?: string;
  readonly xattrs?: Readonly<Record<string, string>>;
}

/** By path relative to the root, which is ".". */
export type Listing = Readonly<Record<string, ListedEntry>>;

export interface DirectoryEntry {
  readonly name: string;
  readonly ino: number;
  /** Where reading goes on behind this entry; in decimal, for it may use all 63 bits. */
  readonly offset: string;
  readonly type: EntryType;
}

/** A file handle; its bytes in hexadecimal. */
export interface Handle {
  readonly type: number;
  readonly bytes: string;
}

/** The numbers of an entry; `listed` is its inode in the listing of its directory. */
export interface EntryNumbers {
  readonly errno?: string;
  readonly ino: number;
  readonly listed: number;
  readonly nlink: number;
  readonly blocks: number;
  readonly mtime: string;
}

export interface FileSystemSize {
  readonly blockSize: number;
  readonly blocks: number;
  readonly available: number;
  readonly files: number;
  readonly freeFiles: number;
  readonly nameMax: number;
}

export interface Completed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The system calls caller.py makes, with the arguments it takes and the values it gives. */
export interface SystemCalls {
  open(path: string, flags: string, mode?: number): number;
  close(fd: number): null;
  closeAll(): null;
  read(fd: number, count: number): string;
  pread(fd: number, count: number, offset: number): string;
  write(fd: number, data: string): number;
  pwrite(fd: number, data: string, offset: number): number;
  lseek(
    fd: number,
    offset: number | string,
    whence: "SEEK_SET" | "SEEK_CUR" | "SEEK_END" | "SEEK_DATA" | "SEEK_HOLE",
  ): number;
  truncate(path: string, size: number): null;
  ftruncate(fd: number, size: number): null;
  fsync(fd: number): null;
  stat(path: string): Attributes;
  lstat(path: string): Attributes;
  fstat(fd: number): Attributes;
  statfs(path: string): FileSystemSize;
  mkdir(path: string, mode?: number): null;
  rmdir(path: string): null;
  unlink(path: string): null;
  rename(source: string, target: string): null;
  rename2(source: string, target: string, flags: string): null;
  link(source: string, target: string, follow?: boolean): null;
  linkDescriptor(fd: number, target: string): null;
  symlink(target: string, path: string): null;
  readlink(path: string): string;
  mknod(path: string, mode: number, major: number, minor: number): null;
  mkfifo(path: string, mode?: number): null;
  chmod(path: string, mode: number): null;
  fchmod(fd: number, mode: number): null;
  chown(path: string, uid: number, gid: number): null;
  lchown(path: string, uid: number, gid: number): null;
  /** Times in nanoseconds, or "now", or "omit". */
  utimens(path: string, atime: string, mtime: string, follow?: boolean): null;
  setxattr(path: string, name: string, value: string): null;
  getxattr(path: string, name: string): string;
  listxattr(path: string): string[];
  removexattr(path: string, name: string): null;
  listdir(path: string): string[];
  getdents(fd: number, size: number): DirectoryEntry[];
  listEntries(path: string, size: number): DirectoryEntry[];
  /** openat2 relative to a directory, closed at once. */
  resolve(directory: string, path: string, flags: string, how: string, mode?: number): null;
  handle(path: string, flags: number): Handle;
  /** Watches a path for all events; gives the number of the watch. */
  watch(path: string): number;
  events(): { readonly watch: number; readonly mask: number; readonly moved: boolean; readonly name: string }[];
  numbers(root: string): Readonly<Record<string, EntryNumbers>>;
  /** The sum of R_OK 4, W_OK 2, X_OK 1. */
  access(path: string, mode: number): number;
  fallocate(fd: number, mode: string, offset: number, length: number): null;
  copyFileRange(source: number, target: number, count: number, from: number, to: number): number;
  lock(fd: number, kind: "read" | "write" | "none", start?: number, length?: number): null;
  flock(fd: number, kind: "shared" | "exclusive" | "none"): null;
  map(fd: number, length: number, access?: "r" | "rw" | "rp"): number;
  mapRead(map: number, offset: number, count: number): string;
  mapWrite(map: number, offset: number, data: string): null;
  mapFlush(map: number): null;
  unmap(map: number): null;
  bindSocket(path: string, listen?: boolean): null;
  converse(path: string, text: string): string;
  closeSocket(path: string): null;
  chdir(path: string): null;
  getcwd(): string;
  umask(mask: number): number;
  run(command: readonly string[], stdin?: string): Completed;
  become(uid: number, gid: number, groups: readonly number[]): null;
  listing(root: string, recentFrom?: string): Listing;
  realpath(path: string): string;
}

export type CallName = keyof SystemCalls;

export class SystemCallError extends Error {
  readonly code: string;
  constructor(name: string, code: string) {
    super(`${name}: ${code}`);
    this.code = code;
  }
}

/** A process that makes system calls one after another. Calls may be queued without waiting for the earlier ones. */
export type Caller = AsyncDisposable & {
  readonly [Name in CallName]: (...args: Parameters<SystemCalls[Name]>) => Promise<ReturnType<SystemCalls[Name]>>;
} & {
  /** The same by name, for tests that hold their calls as data. */
  call(name: CallName, ...args: readonly unknown[]): Promise<unknown>;
  readonly pid: number;
};

export interface CallerOptions {
  readonly uid?: number;
  readonly gid?: number;
  readonly groups?: readonly number[];
  /** A call that takes longer has hung: the process is killed and the call fails. */
  readonly timeoutMs?: number;
}

/** Starts a process for system calls; as another user when a uid is given (which needs root). */
export async function startCaller(options: CallerOptions = {}): Promise<Caller> {
  const child = spawn("python3", [fileURLToPath(new URL("./caller.py", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
    // Names that are not UTF-8 arrive as surrogates whatever the locale of the test run.
    env: { ...process.env, PYTHONUTF8: "1", PYTHONDONTWRITEBYTECODE: "1" },
  });
  const call = answering(child, options.timeoutMs ?? HANG_MS);
  const caller = new Proxy({} as Caller, {
    get(_target, name) {
      if (name === "then") return undefined;
      if (name === "call") return call;
      if (name === "pid") return child.pid;
      if (name === Symbol.asyncDispose) return () => stop(child);
      return (...args: unknown[]) => call(String(name), ...args);
    },
  });
  await caller.umask(0o022);
  if (options.uid !== undefined) await caller.become(options.uid, options.gid ?? options.uid, options.groups ?? []);
  return caller;
}

type CallerProcess = ChildProcessByStdio<Writable, Readable, null>;

function answering(
  child: CallerProcess,
  timeoutMs: number,
): (name: string, ...args: readonly unknown[]) => Promise<unknown> {
  const waiting: { name: string; resolve: (value: unknown) => void; reject: (error: Error) => void }[] = [];
  let stopped: string | undefined;
  let deadline: NodeJS.Timeout | undefined;

  // One deadline for the call at the head of the queue: the ones behind it have not begun.
  const watch = () => {
    clearTimeout(deadline);
    const head = waiting[0];
    if (head === undefined) return;
    deadline = setTimeout(() => {
      stopped = `${head.name} gave no answer in ${timeoutMs} ms`;
      child.kill("SIGKILL");
    }, timeoutMs);
  };

  createInterface({ input: child.stdout }).on("line", (line) => {
    const answer = JSON.parse(line) as { ok: unknown } | { errno: string };
    const head = waiting.shift();
    watch();
    if (head === undefined) return;
    if ("errno" in answer) head.reject(new SystemCallError(head.name, answer.errno));
    else head.resolve(answer.ok);
  });
  child.on("close", () => {
    clearTimeout(deadline);
    stopped ??= "the process ended";
    for (const { name, reject } of waiting.splice(0)) reject(new Error(`${name}: ${stopped}`));
  });
  child.stdin.on("error", () => undefined);

  return (name, ...args) =>
    new Promise((resolve, reject) => {
      if (stopped !== undefined) return reject(new Error(`${name}: ${stopped}`));
      waiting.push({ name, resolve, reject });
      if (waiting.length === 1) watch();
      child.stdin.write(`${JSON.stringify([name, ...args])}\n`);
    });
}

async function stop(child: CallerProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.stdin.end();
  const deadline = setTimeout(() => child.kill("SIGKILL"), HANG_MS);
  await exited;
  clearTimeout(deadline);
}

/** How a call ended: "ok", or the name of its errno. A hang or a crash is still a failure of the test. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (error instanceof SystemCallError) return error.code;
    throw error;
  }
}
