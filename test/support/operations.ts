import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { AT, O } from "./constants.ts";
import { decodeName } from "./names.ts";
import { type Argument, cString, memory, pointersTo, type Result, type SystemCall, syscall } from "./syscall.ts";
import { submit, type UringAnswer, type UringRequest } from "./uring.ts";

export type Path = string | Uint8Array;

/** A path from the working directory, or relative to an open directory. */
export type Where = Path | { readonly at: number; readonly path: Path };

export interface Stat {
  readonly ino: number;
  readonly mode: number;
  readonly nlink: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly blocks: number;
  readonly blksize: number;
  readonly atimeNs: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

export interface Dirent {
  readonly name: string;
  readonly ino: number;
  readonly off: number;
  readonly type: string;
}

export interface Statfs {
  readonly type: number;
  readonly bsize: number;
  readonly blocks: number;
  readonly bfree: number;
  readonly bavail: number;
  readonly files: number;
  readonly ffree: number;
  readonly namelen: number;
}

export interface InotifyEvent {
  readonly mask: number;
  readonly name: string;
}

/** What an operation gave; which of the further fields are there depends on the operation. */
export interface Answer extends Result {
  readonly stat?: Stat;
  readonly statfs?: Statfs;
  readonly entries?: readonly Dirent[];
  readonly events?: readonly InotifyEvent[];
  readonly answers?: readonly UringAnswer[];
  readonly data?: Uint8Array;
  readonly handle?: Uint8Array;
  readonly text?: string;
  readonly found?: readonly string[];
  readonly reader?: number;
  readonly writer?: number;
  readonly status?: number | null;
  readonly signal?: string | null;
  readonly stdout?: string;
  readonly stderr?: string;
}

type Time = readonly [seconds: number | bigint, nanoseconds: number];

/**
 * What the probe can do. Most rows are one system call under its own name; the rest are short sequences that a table
 * of attacks needs as one step (open and close again, read a whole file, list a whole directory).
 */
export const operations = {
  openat: (where: Where, flags: number, mode = 0o644) => call("openat", ...at(where), flags, mode),
  openat2: (where: Where, how: { flags: number; mode?: number; resolve?: number }) =>
    call("openat2", ...at(where), words(how.flags, how.mode ?? 0, how.resolve ?? 0), 24),
  /** openat, then close at once: 0 on success, so that tables compare answers and not descriptor numbers. */
  tryOpen: (where: Where, flags: number, mode = 0o644) => closing(call("openat", ...at(where), flags, mode)),
  tryOpen2: (where: Where, how: { flags: number; mode?: number; resolve?: number }): Answer =>
    closing(operations.openat2(where, how)),
  close: (fd: number) => call("close", fd),
  dup: (fd: number) => call("dup", fd),
  read: (fd: number, length: number) => reading(length, (buffer) => call("read", fd, buffer, length)),
  pread: (fd: number, length: number, offset: number) =>
    reading(length, (buffer) => call("pread64", fd, buffer, length, offset)),
  write: (fd: number, data: Path) => call("write", fd, bytes(data), bytes(data).length),
  pwrite: (fd: number, data: Path, offset: number) => call("pwrite64", fd, bytes(data), bytes(data).length, offset),
  lseek: (fd: number, offset: number | bigint, whence: number) => call("lseek", fd, offset, whence),
  fsync: (fd: number) => call("fsync", fd),
  flock: (fd: number, operation: number) => call("flock", fd, operation),
  fcntl: (fd: number, command: number, argument: number) => call("fcntl", fd, command, argument),

  statx: (where: Where, flags: number = AT.SYMLINK_NOFOLLOW) => {
    const buffer = Buffer.alloc(256);
    const result = call("statx", ...at(where), flags, 0x7ff, buffer);
    return result.ret === 0 ? { ...result, stat: decodeStatx(buffer) } : result;
  },
  fstatat: (where: Where, flags: number = AT.SYMLINK_NOFOLLOW) => {
    const buffer = Buffer.alloc(144);
    const result = call("newfstatat", ...at(where), buffer, flags);
    return result.ret === 0 ? { ...result, stat: decodeStat(buffer) } : result;
  },
  faccessat: (where: Where, mode: number) => call("faccessat", ...at(where), mode),
  faccessat2: (where: Where, mode: number, flags = 0) => call("faccessat2", ...at(where), mode, flags),
  readlinkat: (where: Where) => {
    const buffer = Buffer.alloc(4096);
    const result = call("readlinkat", ...at(where), buffer, buffer.length);
    return result.ret < 0 ? result : { ...result, text: decodeName(buffer.subarray(0, result.ret)) };
  },

  getdents64: (fd: number, size = 32768): Answer => {
    const buffer = Buffer.alloc(size);
    const result = call("getdents64", fd, buffer, size);
    return result.ret < 0 ? result : { ...result, entries: decodeDirents(buffer.subarray(0, result.ret)) };
  },
  /** The whole listing of a directory, read with a buffer of the given size. */
  list: (where: Where, size = 32768): Answer => {
    const fd = call("openat", ...at(where), O.RDONLY | O.DIRECTORY, 0);
    if (fd.ret < 0) return fd;
    const entries: Dirent[] = [];
    let part = operations.getdents64(fd.ret, size);
    while (part.ret > 0) {
      entries.push(...(part.entries ?? []));
      part = operations.getdents64(fd.ret, size);
    }
    call("close", fd.ret);
    return part.ret < 0 ? part : { ret: 0, errno: "OK", entries };
  },
  /** Goes to an offset of an open directory and reads one buffer there. */
  listAt: (fd: number, offset: number | bigint, size = 32768): Answer => {
    const moved = call("lseek", fd, offset, 0);
    return moved.ret < 0 ? moved : operations.getdents64(fd, size);
  },

  name_to_handle_at: (where: Where, flags = 0) => {
    const handle = Buffer.alloc(8 + 128);
    handle.writeUInt32LE(128, 0);
    const mountId = Buffer.alloc(8);
    const result = call("name_to_handle_at", ...at(where), handle, mountId, flags);
    return result.ret < 0 ? result : { ...result, handle: handle.subarray(0, 8 + handle.readUInt32LE(0)) };
  },
  open_by_handle_at: (mountFd: number, handle: Uint8Array, flags: number) =>
    closing(call("open_by_handle_at", mountFd, handle, flags)),

  mkdirat: (where: Where, mode = 0o755) => call("mkdirat", ...at(where), mode),
  mknodat: (where: Where, mode: number, device = 0) => call("mknodat", ...at(where), mode, device),
  symlinkat: (target: Path, where: Where) => call("symlinkat", cString(target), ...at(where)),
  linkat: (from: Where, to: Where, flags = 0) => call("linkat", ...at(from), ...at(to), flags),
  renameat2: (from: Where, to: Where, flags = 0) => call("renameat2", ...at(from), ...at(to), flags),
  unlinkat: (where: Where, flags = 0) => call("unlinkat", ...at(where), flags),
  rmdir: (where: Where) => call("unlinkat", ...at(where), AT.REMOVEDIR),

  fchmodat: (where: Where, mode: number) => call("fchmodat", ...at(where), mode),
  /** Kernels before 6.6 have no flags for chmod; there it is the older call. */
  fchmodat2: (where: Where, mode: number, flags: number) => {
    const result = call("fchmodat2", ...at(where), mode, flags);
    return result.errno === "ENOSYS" ? call("fchmodat", ...at(where), mode) : result;
  },
  fchmod: (fd: number, mode: number) => call("fchmod", fd, mode),
  fchownat: (where: Where, uid: number, gid: number, flags = 0) => call("fchownat", ...at(where), uid, gid, flags),
  fchown: (fd: number, uid: number, gid: number) => call("fchown", fd, uid, gid),
  utimensat: (where: Where, times: readonly [Time, Time] | "now", flags = 0) =>
    call("utimensat", ...at(where), timespecs(times), flags),
  futimens: (fd: number, times: readonly [Time, Time] | "now") => call("utimensat", fd, 0, timespecs(times), 0),
  truncate: (path: Path, length: number) => call("truncate", cString(path), length),
  ftruncate: (fd: number, length: number) => call("ftruncate", fd, length),
  fallocate: (fd: number, mode: number, offset: number, length: number) => call("fallocate", fd, mode, offset, length),

  setxattr: (path: Path, name: string, value: Path, flags = 0) => setAttribute("setxattr", path, name, value, flags),
  lsetxattr: (path: Path, name: string, value: Path, flags = 0) => setAttribute("lsetxattr", path, name, value, flags),
  fsetxattr: (fd: number, name: string, value: Path, flags = 0) =>
    call("fsetxattr", fd, cString(name), bytes(value), bytes(value).length, flags),
  getxattr: (path: Path, name: string) =>
    reading(4096, (buffer) => call("getxattr", cString(path), cString(name), buffer, 4096)),
  lgetxattr: (path: Path, name: string) =>
    reading(4096, (buffer) => call("lgetxattr", cString(path), cString(name), buffer, 4096)),
  fgetxattr: (fd: number, name: string) =>
    reading(4096, (buffer) => call("fgetxattr", fd, cString(name), buffer, 4096)),
  listxattr: (path: Path) => reading(4096, (buffer) => call("listxattr", cString(path), buffer, 4096)),
  llistxattr: (path: Path) => reading(4096, (buffer) => call("llistxattr", cString(path), buffer, 4096)),
  removexattr: (path: Path, name: string) => call("removexattr", cString(path), cString(name)),
  lremovexattr: (path: Path, name: string) => call("lremovexattr", cString(path), cString(name)),
  fremovexattr: (fd: number, name: string) => call("fremovexattr", fd, cString(name)),

  statfs: (path: Path) => {
    const buffer = Buffer.alloc(120);
    const result = call("statfs", cString(path), buffer);
    return result.ret === 0 ? { ...result, statfs: decodeStatfs(buffer) } : result;
  },
  fstatfs: (fd: number) => {
    const buffer = Buffer.alloc(120);
    const result = call("fstatfs", fd, buffer);
    return result.ret === 0 ? { ...result, statfs: decodeStatfs(buffer) } : result;
  },

  inotify_init1: (flags: number) => call("inotify_init1", flags),
  inotify_add_watch: (fd: number, path: Path, mask: number) => call("inotify_add_watch", fd, cString(path), mask),
  /** The events waiting on a non-blocking inotify descriptor. */
  inotifyEvents: (fd: number) => {
    const buffer = Buffer.alloc(65536);
    const result = call("read", fd, buffer, buffer.length);
    return { ...result, events: decodeInotify(buffer.subarray(0, Math.max(result.ret, 0))) };
  },

  mmap: (fd: number, length: number, prot: number, flags: number, offset = 0) =>
    call("mmap", 0, length, prot, flags, fd, offset),
  mprotect: (address: number, length: number, prot: number) => call("mprotect", address, length, prot),
  munmap: (address: number, length: number) => call("munmap", address, length),
  msync: (address: number, length: number, flags = 4) => call("msync", address, length, flags),
  /** Reads mapped memory; a page the kernel cannot provide ends the probe with SIGBUS. */
  peek: (address: number, length: number) => ({
    ret: length,
    errno: "OK",
    data: Buffer.from(memory(address, length)),
  }),
  poke: (address: number, data: Path) => {
    memory(address, bytes(data).length).set(bytes(data));
    return { ret: 0, errno: "OK" };
  },

  pipe2: (flags = 0) => {
    const pair = Buffer.alloc(8);
    const result = call("pipe2", pair, flags);
    return { ...result, reader: pair.readInt32LE(0), writer: pair.readInt32LE(4) };
  },
  sendfile: (to: number, from: number, count: number) => call("sendfile", to, from, 0, count),
  splice: (from: number, to: number, count: number) => call("splice", from, 0, to, 0, count, 0),
  copy_file_range: (from: number, to: number, count: number) => call("copy_file_range", from, 0, to, 0, count, 0),
  ioctl: (fd: number, request: number, argument: number | Uint8Array) => {
    const value = typeof argument === "number" ? argument : Buffer.from(argument);
    const result = call("ioctl", fd, request, value);
    return typeof value === "number" || result.ret < 0 ? result : { ...result, data: value };
  },

  /** A success ends the probe: the process is the new program then. */
  execveat: (where: Where, argv: readonly string[], flags = 0) => {
    const strings = argv.map(cString);
    const result = call("execveat", ...at(where), asBytes(pointersTo(strings)), asBytes(pointersTo([])), flags);
    // Named here so that the strings live until the kernel has read them.
    return strings.length < 0 ? NOTHING : result;
  },
  /** Runs a program to its end. `ret` is 0 when it could be started. */
  run: (
    command: string,
    argv: readonly string[],
    options: { cwd?: string; input?: string; timeoutMs?: number } = {},
  ) => {
    const ended = spawnSync(command, argv, {
      cwd: options.cwd,
      input: options.input ?? "",
      timeout: options.timeoutMs ?? 30_000,
      encoding: "latin1",
      maxBuffer: 1 << 26,
      env: { PATH: process.env.PATH, HOME: "/nonexistent", LC_ALL: "C", GIT_CONFIG_NOSYSTEM: "1" },
    });
    const errno = ended.error === undefined ? "OK" : ((ended.error as NodeJS.ErrnoException).code ?? "EIO");
    const { status, signal, stdout, stderr } = ended;
    return { ret: errno === "OK" ? 0 : -1, errno, status, signal, stdout: stdout ?? "", stderr: stderr ?? "" };
  },

  socket: (type = 1) => call("socket", 1, type, 0),
  bind: (fd: number, path: Path) => call("bind", fd, ...unixAddress(path)),
  connect: (fd: number, path: Path) => call("connect", fd, ...unixAddress(path)),
  /** socket, bind or connect, close: 0 on success. */
  tryBind: (path: Path): Answer => onSocket((fd) => operations.bind(fd, path)),
  tryConnect: (path: Path): Answer => onSocket((fd) => operations.connect(fd, path)),

  chdir: (path: Path) => call("chdir", cString(path)),
  fchdir: (fd: number) => call("fchdir", fd),
  getcwd: () => {
    const buffer = Buffer.alloc(8192);
    const result = call("getcwd", buffer, buffer.length);
    return result.ret < 0 ? result : { ...result, text: decodeName(buffer.subarray(0, result.ret - 1)) };
  },
  /** chdir, then back: 0 on success. */
  tryChdir: (path: Path) => {
    const result = call("chdir", cString(path));
    if (result.ret === 0) call("chdir", cString("/"));
    return result;
  },
  umask: (mask: number) => call("umask", mask),

  /** Requests through io_uring; results in the order of the requests. */
  uring: (requests: readonly UringRequest[]) => submit(requests),

  /** Opens, reads everything, closes. */
  readFile: (where: Where, flags: number = O.RDONLY): Answer => {
    const fd = call("openat", ...at(where), flags, 0);
    if (fd.ret < 0) return fd;
    const parts: Uint8Array[] = [];
    let part = operations.read(fd.ret, 65536);
    while (part.ret > 0) {
      parts.push(part.data ?? new Uint8Array());
      part = operations.read(fd.ret, 65536);
    }
    call("close", fd.ret);
    return part.ret < 0 ? part : { ret: 0, errno: "OK", data: Buffer.concat(parts) };
  },
  /** Opens with the flags (by default: create, truncate), writes everything, closes. */
  writeFile: (where: Where, data: Path, flags: number = O.WRONLY | O.CREAT | O.TRUNC, mode = 0o644): Answer => {
    const fd = call("openat", ...at(where), flags, mode);
    if (fd.ret < 0) return fd;
    const written = operations.write(fd.ret, data);
    const closed = call("close", fd.ret);
    if (written.ret < 0) return written;
    return closed.ret < 0 ? closed : { ret: 0, errno: "OK" };
  },
  /** Walks a directory and reads whatever can be read; `found` has "TEXT in PATH" for each text met, names included. */
  scan: (root: string, texts: readonly string[]): Answer => {
    const found: string[] = [];
    const visit = (path: string): void => {
      for (const entry of operations.list(path).entries ?? []) {
        if (entry.name === "." || entry.name === "..") continue;
        const child = `${path}/${entry.name}`;
        found.push(...texts.filter((text) => entry.name.includes(text)).map((text) => `${text} in the name ${child}`));
        if (entry.type === "directory") visit(child);
        if (entry.type !== "file") continue;
        const data = Buffer.from(operations.readFile(child, O.RDONLY | O.NONBLOCK | O.NOFOLLOW).data ?? []);
        found.push(...texts.filter((text) => data.includes(text)).map((text) => `${text} in ${child}`));
      }
    };
    visit(root);
    return { ret: found.length, errno: "OK", found };
  },
} satisfies Record<string, (...values: never[]) => Answer>;

export type Operations = typeof operations;
export type OperationName = keyof Operations;

const NOTHING: Answer = { ret: 0, errno: "OK" };

function call(name: SystemCall, ...values: readonly Argument[]): Answer {
  return syscall(name, ...values);
}

function at(where: Where): [directory: number, path: Buffer] {
  return typeof where === "string" || where instanceof Uint8Array
    ? [AT.FDCWD, cString(where)]
    : [where.at, cString(where.path)];
}

function bytes(data: Path): Buffer {
  return typeof data === "string" ? Buffer.from(data) : Buffer.from(data);
}

function asBytes(array: BigUint64Array): Uint8Array {
  return new Uint8Array(array.buffer);
}

function words(...values: readonly number[]): Uint8Array {
  return asBytes(BigUint64Array.from(values.map(BigInt)));
}

function timespecs(times: readonly [Time, Time] | "now"): Argument {
  if (times === "now") return 0;
  return asBytes(BigUint64Array.from(times.flat().map((value) => BigInt.asUintN(64, BigInt(value)))));
}

function closing(opened: Answer): Answer {
  if (opened.ret < 0) return opened;
  call("close", opened.ret);
  return NOTHING;
}

function reading(length: number, run: (buffer: Buffer) => Answer): Answer {
  const buffer = Buffer.alloc(length);
  const result = run(buffer);
  return result.ret < 0 ? result : { ...result, data: buffer.subarray(0, result.ret) };
}

function setAttribute(name: "setxattr" | "lsetxattr", path: Path, key: string, value: Path, flags: number): Answer {
  return call(name, cString(path), cString(key), bytes(value), bytes(value).length, flags);
}

function unixAddress(path: Path): [address: Buffer, length: number] {
  const address = Buffer.concat([Buffer.of(1, 0), cString(path)]);
  return [address, address.length];
}

function onSocket(use: (fd: number) => Answer): Answer {
  const fd = call("socket", 1, 1, 0);
  if (fd.ret < 0) return fd;
  const result = use(fd.ret);
  call("close", fd.ret);
  return result;
}

function decodeStatx(b: Buffer): Stat {
  const time = (offset: number) => b.readBigInt64LE(offset) * 1_000_000_000n + BigInt(b.readUInt32LE(offset + 8));
  return {
    blksize: b.readUInt32LE(4),
    nlink: b.readUInt32LE(16),
    uid: b.readUInt32LE(20),
    gid: b.readUInt32LE(24),
    mode: b.readUInt16LE(28),
    ino: Number(b.readBigUInt64LE(32)),
    size: Number(b.readBigUInt64LE(40)),
    blocks: Number(b.readBigUInt64LE(48)),
    atimeNs: time(64),
    ctimeNs: time(96),
    mtimeNs: time(112),
  };
}

function decodeStat(b: Buffer): Stat {
  const time = (offset: number) => b.readBigInt64LE(offset) * 1_000_000_000n + b.readBigUInt64LE(offset + 8);
  const x64 = process.arch === "x64";
  return {
    ino: Number(b.readBigUInt64LE(8)),
    nlink: x64 ? Number(b.readBigUInt64LE(16)) : b.readUInt32LE(20),
    mode: b.readUInt32LE(x64 ? 24 : 16),
    uid: b.readUInt32LE(x64 ? 28 : 24),
    gid: b.readUInt32LE(x64 ? 32 : 28),
    size: Number(b.readBigInt64LE(48)),
    blksize: b.readUInt32LE(56),
    blocks: Number(b.readBigInt64LE(64)),
    atimeNs: time(72),
    mtimeNs: time(88),
    ctimeNs: time(104),
  };
}

function decodeStatfs(b: Buffer): Statfs {
  const word = (index: number) => Number(b.readBigUInt64LE(index * 8));
  return {
    type: word(0),
    bsize: word(1),
    blocks: word(2),
    bfree: word(3),
    bavail: word(4),
    files: word(5),
    ffree: word(6),
    namelen: word(8),
  };
}

const TYPES: Record<number, string> = {
  0: "unknown",
  1: "fifo",
  2: "character device",
  4: "directory",
  6: "block device",
  8: "file",
  10: "symlink",
  12: "socket",
};

function decodeDirents(b: Buffer): Dirent[] {
  const entries: Dirent[] = [];
  for (let start = 0; start < b.length; start += b.readUInt16LE(start + 16)) {
    const nameStart = start + 19;
    entries.push({
      ino: Number(b.readBigUInt64LE(start)),
      off: Number(b.readBigInt64LE(start + 8)),
      type: TYPES[b[start + 18] ?? 0] ?? "unknown",
      name: decodeName(b.subarray(nameStart, b.indexOf(0, nameStart))),
    });
  }
  return entries;
}

function decodeInotify(b: Buffer): InotifyEvent[] {
  const events: InotifyEvent[] = [];
  for (let start = 0; start < b.length; start += 16 + b.readUInt32LE(start + 12)) {
    const name = b.subarray(start + 16, start + 16 + b.readUInt32LE(start + 12));
    const end = name.indexOf(0);
    events.push({ mask: b.readUInt32LE(start + 4), name: decodeName(end < 0 ? name : name.subarray(0, end)) });
  }
  return events;
}
