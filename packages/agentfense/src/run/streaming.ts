import { once } from "node:events";
import { fstatSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import type { ExecEvent, ExecOutcome } from "@agentfense/server/isolation";

/** Passes the output on no faster than it is read, and gives what the command ended with. */
export async function passOn(
  events: AsyncIterable<ExecEvent>,
  outputs: { readonly stdout: Writable; readonly stderr: Writable },
  signal: AbortSignal,
): Promise<ExecOutcome> {
  for await (const event of events) {
    if (event.kind === "exit") return event.outcome;
    const output = outputs[event.kind];
    if (!output.write(event.data)) await once(output, "drain", { signal });
  }
  throw new Error("the command ended without an exit code");
}

/**
 * What the command gets to read: our own input when that is a pipe, a socket or a file. A terminal is not passed on (that
 * is what `agentfense shell` is for), and neither is /dev/null.
 */
export function inputToPassOn(): Readable | undefined {
  try {
    return fstatSync(0).isCharacterDevice() ? undefined : process.stdin;
  } catch {
    return undefined; // closed
  }
}
