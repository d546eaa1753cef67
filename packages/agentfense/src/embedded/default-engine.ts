import type { ConnectionOptions, Engine } from "@agentfense/sdk";
import { sharedEngine } from "./shared.ts";

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
