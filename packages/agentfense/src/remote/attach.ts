import { Readable, Writable } from "node:stream";
import type { SandboxClient } from "@agentfense/sdk";
import { UsageError } from "../failure.ts";
import { warn } from "../output.ts";
import { TIMED_OUT } from "../run/command-output.ts";
import { Interruption } from "../run/interruption.ts";
import { RawTerminal, terminalSize } from "../run/raw-terminal.ts";
import { followCommand } from "./exec.ts";

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
