import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { type CommandEnd, type ProcessEnd, type SandboxClient, SandboxError } from "@agentfense/sdk";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { printJsonLine, warn } from "../output.ts";
import { inputToPassOn, TIMED_OUT } from "../run/command-output.ts";
import { RawTerminal, terminalSize } from "../run/raw-terminal.ts";
import { Interruption } from "../stop-signals.ts";

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

/** A started process of a sandbox, by its number or its tag. */
interface StartedProcess {
  readonly client: SandboxClient;
  readonly sandboxId: string;
  readonly process: number | string;
}

/** Passes on what a process prints until it has ended, and with `input` what comes on stdin. The exit code. */
export async function attachOutput(
  started: StartedProcess,
  { input, json }: { readonly input: boolean; readonly json: boolean },
): Promise<number> {
  const { client, sandboxId, process: which } = started;
  return await followCommand(async (signal) => {
    const events = await client.attachProcess(sandboxId, which, { signal });
    if (input) void passInput(started, signal);
    return events;
  }, json);
}

/** Beside the output, which tells how it ends: a process that takes no more input is no failure of ours. */
async function passInput({ client, sandboxId, process: which }: StartedProcess, signal: AbortSignal): Promise<void> {
  try {
    for await (const data of process.stdin) await client.sendInput(sandboxId, which, data as Buffer, { signal });
    await client.closeInput(sandboxId, which, { signal });
  } catch (error) {
    if (!signal.aborted) warn(`the input is not passed on: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Ctrl-], which hardly any program uses. */
const DETACH = 0x1d;

/** Connects the user's terminal to that of a started process, until the process has ended or the user detaches. The exit code. */
export async function attachTerminal({ client, sandboxId, process: which }: StartedProcess): Promise<number> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new UsageError("--terminal needs a terminal here; without one there is --input");
  }
  using interruption = new Interruption();
  const detached = new AbortController();
  const call = { signal: AbortSignal.any([interruption.signal, detached.signal]) };
  const resize = (): Promise<void> => client.resizeProcess(sandboxId, which, terminalSize(), call);
  await resize(); // this is also where one without a terminal is refused, with the terminal here as it was

  const exit = Promise.withResolvers<number>();
  async function* outputs(): AsyncGenerator<Uint8Array> {
    try {
      for await (const event of await client.attachProcess(sandboxId, which, call)) {
        if (event.kind === "exit") exit.resolve(event.end.timedOut ? TIMED_OUT : event.end.exitCode);
        else if (event.data.length > 0) yield event.data;
      }
    } catch (error) {
      exit.reject(error);
    }
  }
  const input = new Writable({
    write(keys: Buffer, _encoding, done) {
      const end = keys.indexOf(DETACH);
      const data = end < 0 ? keys : keys.subarray(0, end);
      const sent = data.length === 0 ? Promise.resolve() : client.sendInput(sandboxId, which, data, call);
      sent.then(() => (end < 0 ? undefined : detached.abort())).then(() => done(), done);
    },
  });
  try {
    using user = new RawTerminal();
    await user.connect({ input, output: Readable.from(outputs(), { objectMode: false }), resize, exit: exit.promise });
    return await exit.promise;
  } catch (error) {
    if (interruption.exitCode !== undefined) return interruption.exitCode;
    if (!detached.signal.aborted) throw error;
    warn("detached; the process goes on");
    return 0;
  }
}
