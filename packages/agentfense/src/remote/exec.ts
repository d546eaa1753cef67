import { once } from "node:events";
import { type CommandEnd, type ProcessEnd, SandboxError } from "@agentfense/sdk";
import { CommandFailure } from "../failure.ts";
import { printJsonLine, warn } from "../output.ts";
import { inputToPassOn, TIMED_OUT } from "../run/command-output.ts";
import { Interruption } from "../run/interruption.ts";

/** What comes of a command, or of a process that one is attached to. */
type Event =
  | { readonly kind: "stdout" | "stderr" | "terminal"; readonly data: Uint8Array; readonly lostBytes?: number }
  | { readonly kind: "exit"; readonly end: ProcessEnd & Partial<CommandEnd> };

/** Passes on what a command prints, no faster than it is read, and gives the code to end with. Ctrl-C ends the command. */
export async function followCommand(
  start: (signal: AbortSignal) => AsyncIterable<Event> | Promise<AsyncIterable<Event>>,
  json: boolean,
): Promise<number> {
  using interruption = new Interruption();
  const { signal } = interruption;
  const collected = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  try {
    for await (const event of await start(signal)) {
      if (event.kind === "exit") {
        const exitCode = event.end.timedOut ? TIMED_OUT : event.end.exitCode;
        if (json) await printJsonLine(jsonOf({ ...event.end, exitCode }, collected));
        else warnOf(event.end);
        return exitCode;
      }
      const stream = event.kind === "stderr" ? "stderr" : "stdout";
      if (event.lostBytes) warn(`${event.lostBytes} bytes before this were not kept`);
      if (json) collected[stream].push(event.data);
      else if (!process[stream].write(event.data)) await once(process[stream], "drain", { signal });
    }
    throw new Error("the SDK tells how a command ended");
  } catch (error) {
    const isOurs = signal.aborted || error instanceof SandboxError;
    if (interruption.exitCode !== undefined && isOurs) return interruption.exitCode;
    throw error;
  }
}

function warnOf({ timedOut, outOfMemory, sessionClosed, syncProblems = [] }: ProcessEnd & Partial<CommandEnd>): void {
  if (timedOut) warn("the command was killed, its time was up (--timeout)");
  if (outOfMemory) warn("the command ran out of memory");
  if (sessionClosed) warn("the command ended the shell of its session");
  for (const problem of syncProblems) warn(`not written to the codebase: ${problem}`);
}

function jsonOf(
  { exitCode, signal, timedOut, outOfMemory, ...end }: ProcessEnd & Partial<CommandEnd>,
  { stdout, stderr }: { readonly stdout: readonly Uint8Array[]; readonly stderr: readonly Uint8Array[] },
) {
  return {
    exitCode,
    ...(signal !== undefined && { signal }),
    timedOut,
    outOfMemory,
    sessionClosed: end.sessionClosed ?? false,
    durationMs: Math.round(end.durationMs ?? 0),
    syncedVersion: end.syncedVersion ?? 0,
    syncProblems: end.syncProblems ?? [],
    stdout: Buffer.concat(stdout).toString("utf8"),
    stderr: Buffer.concat(stderr).toString("utf8"),
  };
}

/** A command's input travels in one message. */
const MOST_INPUT = 3 * 1_048_576;

/** What comes from a pipe or a file on stdin; undefined for a terminal. */
export async function readInput(): Promise<Uint8Array | undefined> {
  const input = inputToPassOn();
  if (input === undefined) return undefined;
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of input) {
    size += (piece as Buffer).length;
    if (size > MOST_INPUT) {
      throw new CommandFailure("more input than a command can be given (3 MiB)", {
        hint: "write it to a file of the sandbox first: agentfense sandbox write",
      });
    }
    pieces.push(piece as Buffer);
  }
  return Buffer.concat(pieces);
}
