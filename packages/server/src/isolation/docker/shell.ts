import type { Readable, Writable } from "node:stream";
import type { ChannelState, InterruptSignal, ProcessExit, ShellCommand, ShellProcess } from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import type { ProcessHome } from "./container.ts";
import type { Outputs } from "./outputs.ts";
import { ContainerProcess, type ShellListener } from "./process.ts";
import { SHELL_SCRIPT } from "./scripts.ts";
import type { Warden } from "./warden.ts";

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
export class ContainerShell implements ShellProcess {
  readonly commands: Writable;
  readonly status: Readable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ProcessExit>;
  /** That of the container as it was when the shell started. */
  readonly #warden: Warden;
  readonly #process: ContainerProcess;
  readonly #pid: number;

  private constructor(
    home: ProcessHome,
    process: ContainerProcess,
    { status, pid }: { status: Readable; pid: number },
  ) {
    this.#warden = home.warden;
    this.#process = process;
    this.#pid = pid;
    this.commands = process.stdin!;
    this.stdout = process.stdout;
    this.stderr = process.stderr;
    this.status = status;
    this.exit = process.exit;
  }

  static async start(
    home: ProcessHome,
    command: ShellCommand,
    signal: AbortSignal | undefined,
  ): Promise<ContainerShell> {
    const lines = new StatusLines();
    const process = await ContainerProcess.start(
      home,
      { script: SHELL_SCRIPT, argv: command.argv, env: command.env, workdir: command.workdir, stdin: true },
      { signal, listener: lines },
    );
    const status = lines.attach(process.outputs);
    void process.exit.then(
      () => lines.end(),
      () => lines.end(),
    );
    return new ContainerShell(home, process, { status, pid: await lines.pid });
  }

  /** A status is handed over only when everything that was written before it is here: what is owed is in our buffers. */
  pendingOutput(): Promise<{ readonly stdout: number; readonly stderr: number }> {
    return Promise.resolve({ stdout: this.stdout.readableLength, stderr: this.stderr.readableLength });
  }

  async signalForeground(signal: InterruptSignal, sinceMs: number): Promise<number> {
    const count = await this.#warden.signalChildren(signal, this.#pid, sinceMs);
    this.#process.outputs.grant(LAST_OUTPUT_BYTES);
    return count;
  }

  channels(): Promise<ChannelState> {
    return this.#process.channels(this.#pid);
  }

  async signalShell(signalNumber: number): Promise<void> {
    await this.#warden.signal(signalNumber, this.#pid);
    this.#process.outputs.grant(LAST_OUTPUT_BYTES);
  }

  kill(): void {
    this.#process.kill();
  }
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
