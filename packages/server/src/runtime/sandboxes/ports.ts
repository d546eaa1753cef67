import { setTimeout as wait } from "node:timers/promises";
import { RuntimeError } from "../runtime-error.ts";
import type { Sandboxes } from "./api.ts";
import type { Parts } from "./parts.ts";
import { toRuntimeError, translating } from "./refusals.ts";
import type { Running } from "./registered-sandbox.ts";

const DEFAULT_WAIT_MS = 30_000;
const LONGEST_WAIT_MS = 600_000;
/** Between two looks at a port: short at first, since most servers are up in a moment. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;

/** The calls about ports on the loopback device of a sandbox. */
export function portCalls({ registry, pausing, auditTrail }: Parts): Pick<Sandboxes, "connect" | "waitForPort"> {
  /** Which ports of each running sandbox were reached with which keys: a page makes hundreds of connections. */
  const reached = new WeakMap<Running["sandbox"], Set<string>>();
  return {
    async connect(caller, id, port, signal) {
      const registered = await registry.findReturned(caller, id);
      using stack = new DisposableStack();
      const { sandbox } = stack.use(await pausing.enter(caller, registered));
      const socket = await translating(sandbox.connect(port, { signal }));
      const held = stack.move();
      socket.once("close", () => held.dispose());
      const known = reached.get(sandbox) ?? new Set();
      const key = `${port} ${caller.keyId ?? ""}`;
      if (!known.has(key)) auditTrail.tell("port_opened", registered, caller, { data: { port } });
      reached.set(sandbox, known.add(key));
      return socket;
    },

    async waitForPort(caller, id, port, { timeoutMs = DEFAULT_WAIT_MS, signal }) {
      using entered = await pausing.enter(caller, await registry.findReturned(caller, id));
      if (timeoutMs > LONGEST_WAIT_MS) throw new RuntimeError("INVALID_ARGUMENT", "timeout is ten minutes at most");
      const endsAtMs = performance.now() + timeoutMs;
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
        try {
          (await translating(entered.sandbox.connect(port, { signal }))).destroy();
          return;
        } catch (error) {
          const leftMs = endsAtMs - performance.now();
          if (toRuntimeError(error).code !== "PORT_CLOSED") throw error;
          if (leftMs <= 0) {
            const fault = `nothing listened at port ${port} of the sandbox within ${timeoutMs} ms`;
            throw new RuntimeError("PORT_CLOSED", fault);
          }
          await translating(wait(Math.min(pauseMs, leftMs), undefined, { signal }));
        }
      }
    },
  };
}
