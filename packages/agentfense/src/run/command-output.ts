import { once } from "node:events";
import { fstatSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import type { BoxedWorkspace, ExecEvent, ExecOutcome, ExecRequest } from "@agentfense/server/isolation";
import { print, warn } from "../output.ts";
import type { Settlement } from "./changes.ts";

/** What the command printed, where it was collected. */
export type Collected = ExecOutcome & { readonly stdout?: Buffer; readonly stderr?: Buffer };

/** As timeout(1). */
export const TIMED_OUT = 124;
/** Our own failures: as with `docker run` and `env`, a code that commands hardly ever end with. */
export const NOT_RUN = 125;

/** Runs it to its end: its output is passed on as it comes, or collected for `printJson`. */
export async function runToEnd(
  sandbox: BoxedWorkspace,
  exec: ExecRequest,
  { json, signal }: { readonly json: boolean; readonly signal: AbortSignal },
): Promise<Collected> {
  return json
    ? await sandbox.exec(exec, { signal })
    : await passOn(sandbox.execStream(exec, { signal }), process, signal);
}

export function exitCodeOf({ timedOut, exitCode }: ExecOutcome): number {
  return timedOut ? TIMED_OUT : exitCode;
}

/** What ended it, when that was not its own doing. */
export function warnOfLimits({ timedOut, durationMs, outOfMemory }: ExecOutcome): void {
  if (timedOut) warn(`the command was killed after ${(durationMs / 1000).toFixed(1)} s (--timeout)`);
  if (outOfMemory) warn("the command ran out of memory (--memory)");
}

/** One object for all of it, for programs. */
export async function printJson({ stdout, stderr, ...outcome }: Collected, settlement: Settlement): Promise<void> {
  const { exitCode, signal, timedOut, truncated, outOfMemory, durationMs } = outcome;
  const result = {
    exitCode,
    ...(signal === undefined ? {} : { signal }),
    timedOut,
    truncated,
    outOfMemory,
    durationMs: Math.round(durationMs),
    stdout: stdout?.toString("utf8"),
    stderr: stderr?.toString("utf8"),
    ...settlement,
  };
  await print(`${JSON.stringify(result)}\n`);
}

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
