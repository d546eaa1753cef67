import { Buffer } from "node:buffer";
import { constants } from "node:os";
import koffi from "koffi";
import { encodeName } from "./names.ts";

/** The number of every system call the probe makes, for x86-64 and for the generic table that arm64 uses. */
const NUMBERS = {
  read: [0, 63],
  write: [1, 64],
  close: [3, 57],
  lseek: [8, 62],
  mmap: [9, 222],
  mprotect: [10, 226],
  munmap: [11, 215],
  ioctl: [16, 29],
  pread64: [17, 67],
  pwrite64: [18, 68],
  msync: [26, 227],
  dup: [32, 23],
  sendfile: [40, 71],
  socket: [41, 198],
  connect: [42, 203],
  bind: [49, 200],
  fcntl: [72, 25],
  flock: [73, 32],
  fsync: [74, 82],
  truncate: [76, 45],
  ftruncate: [77, 46],
  getcwd: [79, 17],
  chdir: [80, 49],
  fchdir: [81, 50],
  fchmod: [91, 52],
  fchown: [93, 55],
  umask: [95, 166],
  statfs: [137, 43],
  fstatfs: [138, 44],
  setxattr: [188, 5],
  lsetxattr: [189, 6],
  fsetxattr: [190, 7],
  getxattr: [191, 8],
  lgetxattr: [192, 9],
  fgetxattr: [193, 10],
  listxattr: [194, 11],
  llistxattr: [195, 12],
  flistxattr: [196, 13],
  removexattr: [197, 14],
  lremovexattr: [198, 15],
  fremovexattr: [199, 16],
  getdents64: [217, 61],
  mount: [165, 40],
  inotify_add_watch: [254, 27],
  openat: [257, 56],
  mkdirat: [258, 34],
  mknodat: [259, 33],
  fchownat: [260, 54],
  newfstatat: [262, 79],
  unlinkat: [263, 35],
  linkat: [265, 37],
  symlinkat: [266, 36],
  readlinkat: [267, 78],
  fchmodat: [268, 53],
  faccessat: [269, 48],
  splice: [275, 76],
  utimensat: [280, 88],
  fallocate: [285, 47],
  pipe2: [293, 59],
  inotify_init1: [294, 26],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  renameat2: [316, 276],
  execveat: [322, 281],
  copy_file_range: [326, 285],
  statx: [332, 291],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  openat2: [437, 437],
  faccessat2: [439, 439],
  fchmodat2: [452, 452],
} as const satisfies Record<string, readonly [x64: number, arm64: number]>;

export type SystemCall = keyof typeof NUMBERS;

/** What a system call gave: `ret` is -1 exactly when `errno` is not "OK". */
export interface Result {
  readonly ret: number;
  readonly errno: string;
}

export type Argument = number | bigint | Uint8Array;

const column = process.arch === "arm64" ? 1 : 0;
const libc = koffi.load(null);
const prototypes = new Map<string, (...values: unknown[]) => number>();
const errnoNames = new Map(Object.entries(constants.errno).map(([name, value]) => [value, name]));

/**
 * Calls the kernel directly: nothing between the test and the system call interprets or caches. errno is read by a second
 * call, before which V8 may have left EAGAIN or ETIMEDOUT of a futex of its own there; a call that failed so is made again,
 * and where that is its true answer it gives it again.
 */
export function syscall(name: SystemCall, ...values: readonly Argument[]): Result {
  const padded = [...values, 0, 0, 0, 0, 0, 0].slice(0, 6);
  const shape = padded.map((value) => (value instanceof Uint8Array ? "void *" : "long"));
  const make = (): Result => {
    const ret = Number(prototype(shape)(NUMBERS[name][column], ...padded));
    return ret === -1 ? { ret, errno: errnoName(koffi.errno()) } : { ret, errno: "OK" };
  };
  let result = make();
  for (let i = 0; i < 3 && (result.errno === "EAGAIN" || result.errno === "ETIMEDOUT"); i++) result = make();
  return result;
}

function prototype(shape: readonly string[]): (...values: unknown[]) => number {
  const key = shape.join();
  const known = prototypes.get(key);
  if (known !== undefined) return known;
  const made: (...values: unknown[]) => number = libc.func("syscall", "long", ["long", ...shape]);
  prototypes.set(key, made);
  return made;
}

export function errnoName(value: number): string {
  // EAGAIN and ENOTSUP have two names each; the first of the pair is the one in the manual pages.
  if (value === constants.errno.EAGAIN) return "EAGAIN";
  if (value === constants.errno.EOPNOTSUPP) return "EOPNOTSUPP";
  return errnoNames.get(value) ?? `errno ${value}`;
}

/** A path or name as the kernel wants it: bytes, ended by a zero byte. */
export function cString(text: string | Uint8Array): Buffer {
  return Buffer.concat([typeof text === "string" ? encodeName(text) : text, Buffer.of(0)]);
}

/** The bytes at an address, as they are: writing to the view writes the memory. */
export function memory(address: number, length: number): Uint8Array {
  return new Uint8Array(koffi.view(BigInt(address), length));
}

/** An array of pointers to strings, ended by a null pointer; keep the strings as long as it is used. */
export function pointersTo(strings: readonly Uint8Array[]): BigUint64Array {
  return BigUint64Array.from([...strings.map((text) => koffi.address(text)), 0n]);
}
