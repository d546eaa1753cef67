import { Readable, Writable } from "node:stream";
import { UsageError } from "../command.ts";
import { warn } from "../output.ts";
import { Interruption } from "../run/interruption.ts";
import { RawTerminal, terminalSize } from "../run/raw-terminal.ts";
import { TIMED_OUT } from "./exec-output.ts";
import type { Server } from "./server.ts";

/** Ctrl-], which hardly any program uses. */
const DETACH = 0x1d;

/** Connects the user's terminal to that of a started process, until the process has ended or the user detaches. The exit code. */
export async function attachTerminal({ sandboxes }: Server, request: { readonly sandboxId: string }): Promise<number> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new UsageError("--terminal needs a terminal here; without one there is --input");
  }
  using interruption = new Interruption();
  const detached = new AbortController();
  const call = { signal: AbortSignal.any([interruption.signal, detached.signal]) };
  const resize = async (): Promise<void> => {
    await sandboxes.resizeProcess({ ...request, size: terminalSize() }, call);
  };
  await resize(); // this is also where one without a terminal is refused, with the terminal here as it was

  const exit = Promise.withResolvers<number>();
  async function* outputs(): AsyncGenerator<Uint8Array> {
    try {
      for await (const { data, exitCode, timedOut } of sandboxes.attachProcess(request, call)) {
        if (exitCode !== undefined) exit.resolve(timedOut ? TIMED_OUT : exitCode);
        else if (data.length > 0) yield data;
      }
      exit.reject(new Error("the server ended the stream without saying how the process ended"));
    } catch (error) {
      exit.reject(error);
    }
  }
  const input = new Writable({
    write(keys: Buffer, _encoding, done) {
      const end = keys.indexOf(DETACH);
      const data = end < 0 ? keys : keys.subarray(0, end);
      const sent = data.length === 0 ? Promise.resolve() : sandboxes.sendInput({ ...request, data }, call);
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
