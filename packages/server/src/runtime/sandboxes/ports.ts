import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Caller } from "../caller.ts";
import { RuntimeError } from "../errors.ts";
import { toRuntimeError, translating } from "./errors.ts";
import type { Entered } from "./pausing.ts";

const DEFAULT_WAIT_MS = 30_000;
const LONGEST_WAIT_MS = 600_000;
/** Between two looks at a port: short at first, since most servers are up in a moment. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;

/** A connection to a port of a sandbox, which is let go of when that closes. */
export async function connectPort(entered: Entered, port: number, signal?: AbortSignal): Promise<Socket> {
  using stack = new DisposableStack();
  stack.use(entered);
  const socket = await translating(entered.sandbox.connect(port, { signal }));
  const held = stack.move();
  socket.once("close", () => held.dispose());
  return socket;
}

/** Of each sandbox that runs, which ports were reached with which keys. */
const reached = new WeakMap<Entered["sandbox"], Set<string>>();

/** Whether this key reaches this port for the first time since the sandbox started: a page makes hundreds of connections. */
export function isFirstConnection({ sandbox }: Entered, port: number, { keyId = "" }: Caller): boolean {
  const known = reached.get(sandbox) ?? new Set();
  const isFirst = !known.has(`${port} ${keyId}`);
  reached.set(sandbox, known.add(`${port} ${keyId}`));
  return isFirst;
}

/** Resolves when something accepts there; PORT_CLOSED when nothing has in time. */
export async function waitForPort(
  { sandbox }: Pick<Entered, "sandbox">,
  port: number,
  { timeoutMs = DEFAULT_WAIT_MS, signal }: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
): Promise<void> {
  if (timeoutMs > LONGEST_WAIT_MS) throw new RuntimeError("INVALID_ARGUMENT", "timeout is ten minutes at most");
  const endsAtMs = performance.now() + timeoutMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      (await translating(sandbox.connect(port, { signal }))).destroy();
      return;
    } catch (error) {
      const leftMs = endsAtMs - performance.now();
      if (toRuntimeError(error).code !== "PORT_CLOSED") throw error;
      if (leftMs <= 0) {
        throw new RuntimeError("PORT_CLOSED", `nothing listened at port ${port} of the sandbox within ${timeoutMs} ms`);
      }
      await translating(wait(Math.min(pauseMs, leftMs), undefined, { signal }));
    }
  }
}
