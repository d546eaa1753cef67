import type { ConnectionOptions, Engine } from "@agentfense/sdk";
import { EmbeddedEngine } from "./engine.ts";

/**
 * The engine for those who bring none; undefined: a server is named.
 *
 * | endpoint | AGENTFENSE_ENDPOINT | where sandboxes are                |
 * | -------- | ------------------- | ---------------------------------- |
 * | given    |                     | on that server                     |
 * | absent   | set, not empty      | on that server                     |
 * | absent   | absent or empty     | in this process, in its own engine |
 *
 * The process's own engine goes on when what is given here is disposed of.
 */
export function defaultEngine(
  { endpoint }: ConnectionOptions,
  environment: Readonly<Record<string, string | undefined>>,
): Engine | undefined {
  if (endpoint !== undefined || environment.AGENTFENSE_ENDPOINT) return undefined;
  const engine = sharedEngine();
  return {
    name: engine.name,
    transport: engine.transport,
    openDirectory: (directory, options) => engine.openDirectory(directory, options),
    [Symbol.asyncDispose]: async () => {},
  };
}

// One engine costs a thread, a launcher and a watchdog; those who do not bring their own share one.
let shared: EmbeddedEngine | undefined;

/** The process's own engine, made at its first use, and anew after it was closed. */
function sharedEngine(): EmbeddedEngine {
  if (shared === undefined || shared.isClosed) shared = EmbeddedEngine.lazily();
  return shared;
}

/** Ends the process's own engine now, with every sandbox in it, and not when the process ends. */
export async function closeEngine(): Promise<void> {
  await shared?.close();
}
