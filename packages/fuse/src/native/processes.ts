import koffi from "koffi";
import { call } from "./result.ts";
import { Open } from "./syscalls.ts";

// What running processes needs of the kernel and Node does not offer: bare pipes, anonymous files, process descriptors,
// terminals, and handing descriptors over. As in syscalls.ts, every function returns the kernel's result or the negated errno.

const libc = koffi.load(null);

// All but one are the same on x86-64 and arm64.
const NR = { kcmp: process.arch === "x64" ? 312 : 272, pidfdSendSignal: 424, pidfdOpen: 434 };

const c = {
  pipe2: libc.func("int pipe2(void *, int)"),
  memfdCreate: libc.func("int memfd_create(const char *, unsigned int)"),
  pidfdOpen: libc.func("long syscall(long, int, unsigned int)"),
  pidfdSendSignal: libc.func("long syscall(long, int, int, void *, unsigned int)"),
  kcmp: libc.func("long syscall(long, int, int, int, unsigned long, unsigned long)"),
  ioctl: libc.func("int ioctl(int, unsigned long, void *)"),
  ioctlInt: libc.func("int ioctl(int, unsigned long, long)"),
  kill: libc.func("int kill(int, int)"),
  socketpair: libc.func("int socketpair(int, int, int, void *)"),
  sendmsg: libc.func("int64_t sendmsg(int, void *, int)"),
  poll: libc.func("int poll(void *, unsigned long, int)"),
  spawn: libc.func("int posix_spawnp(void *, const char *, void *, void *, const char **, const char **)"),
  actionsInit: libc.func("int posix_spawn_file_actions_init(void *)"),
  actionsDestroy: libc.func("int posix_spawn_file_actions_destroy(void *)"),
  actionDup: libc.func("int posix_spawn_file_actions_adddup2(void *, int, int)"),
  waitpid: libc.func("int waitpid(int, void *, int)"),
  prlimit: libc.func("int prlimit(int, int, void *, void *)"),
};

export interface Pipe {
  readonly readEnd: number;
  readonly writeEnd: number;
}

/**
 * What the kernel reads and writes for one call after the other. A new array for each costs more than the call: koffi gives it memory of
 * its own, which the collector has to take back.
 */
const pair = new Int32Array(new ArrayBuffer(8));

/** A pipe, close-on-exec, blocking at both ends. */
export function pipe(): Pipe | number {
  const code = call(() => c.pipe2(pair, Open.CLOEXEC));
  return code < 0 ? code : { readEnd: pair[0]!, writeEnd: pair[1]! };
}

const MFD_CLOEXEC = 1;

/** A file without a name, in memory. Whoever opens it anew through /proc reads it from the start. */
export function anonymousFile(name: string): number {
  return call(() => c.memfdCreate(name, MFD_CLOEXEC));
}

/** A descriptor that stays with this process even when its number is used again. */
export function pidfdOpen(pid: number): number {
  return call(() => c.pidfdOpen(NR.pidfdOpen, pid, 0));
}

export function pidfdSendSignal(pidfd: number, signal: number): number {
  return call(() => c.pidfdSendSignal(NR.pidfdSendSignal, pidfd, signal, null, 0));
}

export function kill(pid: number, signal: number): number {
  return call(() => c.kill(pid, signal));
}

const KCMP_FILES = 2;

/** Whether two threads have one table of descriptors; not, too, where that cannot be known. */
export function shareDescriptors(one: number, other: number): boolean {
  return call(() => c.kcmp(NR.kcmp, one, other, KCMP_FILES, 0, 0)) === 0;
}

const FIONREAD = 0x541b;

/** How many bytes a read from this pipe would find now. */
export function bytesWaiting(fd: number): number {
  const code = call(() => c.ioctl(fd, FIONREAD, pair));
  return code < 0 ? code : pair[0]!;
}

const FIONBIO = 0x5421;

/** Reads and writes of this descriptor, and of whoever else has the same opened file, no longer wait. */
export function setNonBlocking(fd: number): number {
  pair[0] = 1;
  return call(() => c.ioctl(fd, FIONBIO, pair));
}

const O_NOCTTY = 0o400;
const TIOCSPTLCK = 0x40045431;
const TIOCGPTPEER = 0x5441;
const TIOCSWINSZ = 0x5414;

/** The other side of a terminal, by its master: no path is looked up, for it may be in another mount namespace. */
export function otherSideOf(master: number): number {
  const code = call(() => c.ioctl(master, TIOCSPTLCK, new Int32Array(1))); // zero: unlock
  return code < 0 ? code : call(() => c.ioctlInt(master, TIOCGPTPEER, Open.RDWR | O_NOCTTY | Open.CLOEXEC));
}

export function setTerminalSize(master: number, columns: number, rows: number): number {
  const size = new Uint16Array([rows, columns, 0, 0]);
  return call(() => c.ioctl(master, TIOCSWINSZ, size));
}

const NS_GET_USERNS = 0xb701;

/** A descriptor of the user namespace whose capabilities rule over this namespace. */
export function owningUserNamespace(namespace: number): number {
  return call(() => c.ioctl(namespace, NS_GET_USERNS, null));
}

const AF_UNIX = 1;
const SOCK_SEQPACKET = 5;

/** A connected pair of sockets on which messages stay apart, close-on-exec. */
export function messageSockets(): [number, number] | number {
  const code = call(() => c.socketpair(AF_UNIX, SOCK_SEQPACKET | Open.CLOEXEC, 0, pair));
  return code < 0 ? code : [pair[0]!, pair[1]!];
}

const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const HEADER_BYTES = 16;
const MOST_DESCRIPTORS = 64;

// One message after the other is put together here. The kernel is given addresses, and what they point to must not move, as
// small arrays do that do not lie in a buffer of their own, nor be collected: all are used by the function that sends.
const message = new Uint8Array(new ArrayBuffer(8));
const control = new Uint32Array(new ArrayBuffer(HEADER_BYTES + 4 * MOST_DESCRIPTORS));
const vector = new BigUint64Array(new ArrayBuffer(16));
const header = new BigUint64Array(new ArrayBuffer(56));

/** Sends a letter with descriptors; the receiver gets its own copies. EAGAIN when too many messages wait. */
export function sendDescriptors(socket: number, letter: string, descriptors: readonly number[]): number {
  message[0] = letter.charCodeAt(0);
  const length = HEADER_BYTES + 4 * descriptors.length;
  control.set([length, 0, SOL_SOCKET, SCM_RIGHTS, ...descriptors]);
  vector.set([koffi.address(message), 1n]);
  const size = descriptors.length === 0 ? 0n : BigInt(8 * Math.ceil(length / 8));
  header.set([0n, 0n, koffi.address(vector), 1n, koffi.address(control), size, 0n]);
  return call(() => c.sendmsg(socket, header, MSG_DONTWAIT | MSG_NOSIGNAL));
}

const POLLHUP = 0x10;

/** Whether nobody can write to this pipe any more. */
export function hasNoWriter(readEnd: number): boolean {
  pair.set([readEnd, 0]);
  return call(() => c.poll(pair, 1, 0)) > 0 && ((pair[1]! >>> 16) & POLLHUP) !== 0;
}

/** More than a list of file actions takes in any libc. */
const ACTIONS_BYTES = 256;
const ENOMEM = 12;

/**
 * Starts a program that is looked for on the PATH and returns its process number. Its descriptors, from 0 on, are these, none of
 * which is one of the first three here. Node's own way is a fork, which takes time by the size of this process, and has it pay for
 * every page that it writes to afterwards; here the child borrows the memory until it is the other program. Whoever starts one
 * waits for it: else it stays behind as a zombie.
 */
export function spawn(argv: readonly string[], env: readonly string[], descriptors: readonly number[]): number {
  const pid = new Int32Array(1);
  const actions = new Uint8Array(ACTIONS_BYTES);
  if (c.actionsInit(actions) !== 0) return -ENOMEM;
  try {
    for (const [place, fd] of descriptors.entries()) if (c.actionDup(actions, fd, place) !== 0) return -ENOMEM;
    const errno = c.spawn(pid, argv[0], actions, null, [...argv, null], [...env, null]);
    return errno === 0 ? pid[0]! : -errno;
  } finally {
    c.actionsDestroy(actions);
  }
}

/** Waits on a thread of libuv's pool for the end of a program that was started here; its exit code, null when it was killed. */
export function ended(pid: number): Promise<number | null> {
  const status = new Int32Array(1);
  return new Promise((resolve, reject) => {
    c.waitpid.async(pid, status, 0, (error: unknown) => (error ? reject(error) : resolve(exitCode(status[0]!))));
  });
}

/** The same, for a process that is about to exit. */
export function waitUntilEnded(pid: number): void {
  c.waitpid(pid, null, 0);
}

function exitCode(status: number): number | null {
  return (status & 0x7f) === 0 ? (status >> 8) & 0xff : null;
}

const RLIMIT_CORE = 4;
/** Too small for a file, and the one value at which the kernel does not start a program that takes a core either. */
const NO_CORE = 1n;

/** From now on the kernel keeps nothing of this process when it dies. What it starts may raise the limit again. */
export function leaveNoCore(): number {
  const limit = new BigUint64Array(2);
  const code = call(() => c.prlimit(0, RLIMIT_CORE, null, limit));
  if (code < 0) return code;
  limit[0] = limit[1]! < NO_CORE ? limit[1]! : NO_CORE;
  return call(() => c.prlimit(0, RLIMIT_CORE, limit, null));
}
