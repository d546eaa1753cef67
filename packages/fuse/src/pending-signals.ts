import { readFileSync } from "node:fs";

/** SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU: a thread that only stops and goes on wants its answer. */
const STOPPING = [18, 19, 20, 21, 22].reduce((mask, signal) => mask | (1n << BigInt(signal - 1)), 0n);

/**
 * Whether a signal waits for this thread that would end or interrupt what it does. The kernel also interrupts a request when the
 * thread is about to be frozen: then there is none. One that is not to be found has died, or is of another pid namespace.
 */
export function hasSignalPending(thread: number): boolean {
  let status: string;
  try {
    status = readFileSync(`/proc/${thread}/status`, "latin1");
  } catch {
    return true;
  }
  const mask = (name: string): bigint =>
    BigInt(`0x${new RegExp(`^${name}:\\s*(\\w+)$`, "m").exec(status)?.[1] ?? "0"}`);
  return ((mask("SigPnd") | mask("ShdPnd")) & ~mask("SigBlk") & ~STOPPING) !== 0n;
}
