import type { Readable } from "node:stream";
import type { ShellCommand, ShellProcess } from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import type { ProcessHome } from "./container.ts";
import { ContainerProcess, type ShellListener } from "./process.ts";
import { SHELL_SCRIPT } from "./scripts.ts";
import type { Outputs } from "./streams.ts";

/**
 * The status that says how an interrupted command ended comes behind its output, which nobody may be reading: more than
 * this the engine and the kernel do not hold for one that has ended.
 */
const LAST_OUTPUT_BYTES = 16 * 1024 ** 2;

/**
 * The shell of a session. The engine has no channel but stdin, stdout and stderr, so what the shell writes to descriptor 3
 * travels line by line as frames in both outputs (see scripts.ts) and is taken out of them here. A status is text without
 * the characters NUL and 0x1e.
 */
export async function openContainerShell(
  home: ProcessHome,
  { argv, env, workdir }: ShellCommand,
  signal: AbortSignal | undefined,
): Promise<ShellProcess> {
  const lines = new StatusLines();
  const command = { script: SHELL_SCRIPT, argv, env, workdir, stdin: true };
  const process = await ContainerProcess.start(home, command, { signal, listener: lines });
  const status = lines.attach(process.outputs);
  const end = (): void => lines.end();
  process.exit.then(end, end);
  const pid = await lines.pid;
  const { warden } = home; // that of the container as it is now
  const { stdout, stderr } = process;
  return {
    commands: process.stdin!,
    status,
    stdout,
    stderr,
    exit: process.exit,
    // A status is handed over only when everything that was written before it is here: what is owed is in our buffers.
    pendingOutput: async () => ({ stdout: stdout.readableLength, stderr: stderr.readableLength }),
    signalForeground: async (interrupt, sinceMs) => {
      const count = await warden.signalChildren(interrupt, pid, sinceMs);
      process.outputs.grant(LAST_OUTPUT_BYTES);
      return count;
    },
    channels: () => process.channels(pid),
    signalShell: async (signalNumber) => {
      await warden.signal(signalNumber, pid);
      process.outputs.grant(LAST_OUTPUT_BYTES);
    },
    kill: () => process.kill(),
  };
}

/** Keeps what the script says until somebody can take it. */
class StatusLines implements ShellListener {
  readonly #pid = Promise.withResolvers<number>();
  readonly #early: string[] = [];
  #push: ((line: string) => void) | undefined;
  #end: (() => void) | undefined;

  constructor() {
    this.#pid.promise.catch(() => {});
  }

  get pid(): Promise<number> {
    return this.#pid.promise;
  }

  /** The stream for the shell's lines; like any output, it stops the shell when nobody reads. */
  attach(outputs: Outputs): Readable {
    const status = outputs.open();
    this.#push = (line) => outputs.push(status, Buffer.from(`${line}\n`));
    this.#end = () => outputs.end(status);
    this.#early.splice(0).forEach(this.#push);
    return status;
  }

  onShell(pid: number): void {
    this.#pid.resolve(pid);
  }

  onStatus(line: string): void {
    if (this.#push === undefined) this.#early.push(line);
    else this.#push(line);
  }

  end(): void {
    this.#pid.reject(new SandboxError("INTERNAL", "the shell ended before it began"));
    this.#end?.();
  }
}
