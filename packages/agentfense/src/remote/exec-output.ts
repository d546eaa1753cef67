import { once } from "node:events";
import type { ExecOutput } from "@agentfense/protocol/sandbox";
import { ExecOutput_OutputType } from "@agentfense/protocol/sandbox";
import { ConnectError } from "@connectrpc/connect";
import { CommandFailure } from "../command.ts";
import { warn } from "../output.ts";
import { Interruption } from "../run/interruption.ts";
import { printJsonLine } from "./show.ts";

/** As timeout(1). */
export const TIMED_OUT = 124;
/** Our own failures: as with `agentfense run`, a code that commands hardly ever end with. */
export const NOT_RUN = 125;

/** Passes on what a command prints, no faster than it is read, and gives the code to end with. Ctrl-C ends the command. */
export async function followCommand(
  start: (signal: AbortSignal) => AsyncIterable<ExecOutput>,
  { json }: { readonly json: boolean },
): Promise<number> {
  using interruption = new Interruption();
  const { signal } = interruption;
  try {
    return await follow(start(signal), json ? new Collector() : new Passer(signal));
  } catch (error) {
    if (interruption.exitCode !== undefined && (signal.aborted || error instanceof ConnectError))
      return interruption.exitCode;
    throw error;
  }
}

interface Outlet {
  take(stream: "stdout" | "stderr", data: Uint8Array): Promise<void>;
  end(last: ExecOutput, exitCode: number): Promise<void>;
}

async function follow(outputs: AsyncIterable<ExecOutput>, outlet: Outlet): Promise<number> {
  for await (const output of outputs) {
    if (output.exitCode === undefined) {
      await outlet.take(output.type === ExecOutput_OutputType.STDERR ? "stderr" : "stdout", output.data);
    } else {
      const exitCode = output.timedOut ? TIMED_OUT : output.exitCode;
      await outlet.end(output, exitCode);
      return exitCode;
    }
  }
  throw new CommandFailure("the server ended the stream without saying how the command ended", {
    exitCode: NOT_RUN,
  });
}

class Passer implements Outlet {
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async take(stream: "stdout" | "stderr", data: Uint8Array): Promise<void> {
    const output = process[stream];
    if (!output.write(data)) await once(output, "drain", { signal: this.#signal });
  }

  async end(last: ExecOutput): Promise<void> {
    if (last.timedOut) warn("the command was killed, its time was up (--timeout)");
    if (last.outOfMemory) warn("the command ran out of memory");
    if (last.sessionClosed) warn("the command ended the shell of its session");
    for (const problem of last.syncProblems) warn(`not written to the codebase: ${problem}`);
  }
}

class Collector implements Outlet {
  readonly #pieces = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };

  async take(stream: "stdout" | "stderr", data: Uint8Array): Promise<void> {
    this.#pieces[stream].push(data);
  }

  async end(last: ExecOutput, exitCode: number): Promise<void> {
    const { signal, timedOut, outOfMemory, sessionClosed, syncedVersion, syncProblems, duration } = last;
    await printJsonLine({
      exitCode,
      ...(signal === "" ? {} : { signal }),
      timedOut,
      outOfMemory,
      sessionClosed,
      durationMs: Math.round(Number(duration?.seconds ?? 0n) * 1000 + (duration?.nanos ?? 0) / 1e6),
      syncedVersion: Number(syncedVersion),
      syncProblems,
      stdout: Buffer.concat(this.#pieces.stdout).toString("utf8"),
      stderr: Buffer.concat(this.#pieces.stderr).toString("utf8"),
    });
  }
}
