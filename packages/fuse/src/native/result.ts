import koffi from "koffi";

// How the native modules turn what libc returned into a number: the result, or the negated errno.

const errno = koffi.errno;

const EIO = 5;
const EAGAIN = 11;
const ETIMEDOUT = 110;

/** For calls that may rightly answer EAGAIN, and those that are made for every request. */
export function result(value: number): number {
  return value < 0 ? -(errno() || EIO) : value;
}

/**
 * errno is read by a second call, and between the two V8 may have done something of its own on this thread: a futex leaves
 * EAGAIN or ETIMEDOUT behind. Where these cannot be the answer the call is made again; having failed, it changed nothing.
 */
export function call(make: () => number): number {
  let code = result(make());
  for (let i = 0; i < 8 && isDoubtful(code); i++) code = result(make());
  return code;
}

function isDoubtful(code: number): boolean {
  return code === -EAGAIN || code === -ETIMEDOUT || code === -EIO;
}
