/** Linux error numbers, as positive values; the same on every architecture we run on. */
export const Errno = {
  OK: 0,
  EPERM: 1,
  ENOENT: 2,
  EINTR: 4,
  EIO: 5,
  ENXIO: 6,
  E2BIG: 7,
  EBADF: 9,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EBUSY: 16,
  EEXIST: 17,
  EXDEV: 18,
  ENODEV: 19,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  ENFILE: 23,
  EMFILE: 24,
  ENOTTY: 25,
  EFBIG: 27,
  ENOSPC: 28,
  EROFS: 30,
  EMLINK: 31,
  EPIPE: 32,
  ERANGE: 34,
  ENAMETOOLONG: 36,
  ENOSYS: 38,
  ENOTEMPTY: 39,
  ELOOP: 40,
  ENODATA: 61,
  EPROTO: 71,
  EILSEQ: 84,
  EOPNOTSUPP: 95,
  ECONNRESET: 104,
  ENOTCONN: 107,
  ETOOMANYREFS: 109,
  ETIMEDOUT: 110,
  ESTALE: 116,
  EDQUOT: 122,
} as const;

const NAMES = new Map<number, string>(Object.entries(Errno).map(([name, value]) => [value, name]));

/** "ENOENT" for 2; "errno 200" for a number without a name here. */
export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `errno ${errno}`;
}

/** An error of the kernel's, for set-up work where exceptions are the right tool (never on the request path). */
export class SystemError extends Error {
  override readonly name = "SystemError";
  readonly errno: number;
  readonly code: string;
  readonly operation: string;

  constructor(operation: string, errno: number) {
    super(`${operation}: ${errnoName(errno)}`);
    this.operation = operation;
    this.errno = errno;
    this.code = errnoName(errno);
  }
}

/** Passes a result through, or throws the SystemError that a negative one stands for. */
export function check(operation: string, result: number): number {
  if (result < 0) throw new SystemError(operation, -result);
  return result;
}
