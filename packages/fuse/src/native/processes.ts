import koffi from "koffi";
import { call } from "./result.ts";
import { Open } from "./syscalls.ts";

// What running processes needs of the kernel and Node does not offer: bare pipes, anonymous files, process descriptors
// and terminals. As in syscalls.ts, every function returns the kernel's result or the negated errno.

const libc = koffi.load(null);

const NR = { pidfdSendSignal: 424, pidfdOpen: 434 }; // the same on x86-64 and arm64

const c = {
  pipe2: libc.func("int pipe2(void *, int)"),
  memfdCreate: libc.func("int memfd_create(const char *, unsigned int)"),
  open: libc.func("int open(const char *, int, unsigned int)"),
  pidfdOpen: libc.func("long syscall(long, int, unsigned int)"),
  pidfdSendSignal: libc.func("long syscall(long, int, int, void *, unsigned int)"),
  ioctl: libc.func("int ioctl(int, unsigned long, void *)"),
  kill: libc.func("int kill(int, int)"),
};

export interface Pipe {
  readonly readEnd: number;
  readonly writeEnd: number;
}

/** A pipe, close-on-exec, blocking at both ends. */
export function pipe(): Pipe | number {
  const ends = new Int32Array(2);
  const code = call(() => c.pipe2(ends, Open.CLOEXEC));
  return code < 0 ? code : { readEnd: ends[0]!, writeEnd: ends[1]! };
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

const FIONREAD = 0x541b;

/** How many bytes a read from this pipe would find now. */
export function bytesWaiting(fd: number): number {
  const count = new Int32Array(1);
  const code = call(() => c.ioctl(fd, FIONREAD, count));
  return code < 0 ? code : count[0]!;
}

const O_NOCTTY = 0o400;
const TIOCGPTN = 0x80045430;
const TIOCSPTLCK = 0x40045431;
const TIOCSWINSZ = 0x5414;

/** A new terminal: the master's descriptor, and the path of the other side. */
export function openTerminal(): { readonly master: number; readonly path: string } | number {
  const master = call(() => c.open("/dev/ptmx", Open.RDWR | O_NOCTTY | Open.CLOEXEC, 0));
  if (master < 0) return master;
  const number = new Int32Array(1);
  const code = call(() => c.ioctl(master, TIOCSPTLCK, number)); // zero: unlock
  if (code < 0) return code;
  const named = call(() => c.ioctl(master, TIOCGPTN, number));
  return named < 0 ? named : { master, path: `/dev/pts/${number[0]!}` };
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
