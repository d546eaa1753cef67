import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { ChannelState, InterruptSignal, ProcessExit, ShellProcess } from "../backend/backend.ts";
import type { BootClock } from "./boot-clock.ts";
import type { Command } from "./command.ts";
import { childrenOf, type HostProcess, signalProcess, withDescendants } from "./host-processes.ts";
import type { PipeOutput } from "./pipe-output.ts";
import { pipesOf } from "./process.ts";

/** A shell in the box, seen and signalled from the host: nothing inside has to cooperate. */
export class BwrapShell implements ShellProcess {
  readonly commands: Writable;
  readonly status: Readable;
  readonly stdout: PipeOutput;
  readonly stderr: PipeOutput;
  readonly exit: Promise<ProcessExit>;
  readonly #command: Command;
  readonly #shell: HostProcess | undefined;
  readonly #clock: BootClock;
  readonly oomKills?: () => Promise<number>;

  constructor(
    command: Command,
    exit: Promise<ProcessExit>,
    options: { clock: BootClock; oomKills?: (() => Promise<number>) | undefined },
  ) {
    const { stdin, stdout, stderr } = pipesOf(command);
    if (stdin === undefined || command.channel === undefined) throw new TypeError("this command is no shell");
    this.commands = stdin;
    this.status = command.channel;
    this.stdout = stdout;
    this.stderr = stderr;
    this.exit = exit;
    this.#command = command;
    this.#shell = command.main;
    this.#clock = options.clock;
    if (options.oomKills !== undefined) this.oomKills = options.oomKills;
  }

  async pendingOutput(): Promise<{ stdout: number; stderr: number }> {
    return { stdout: this.stdout.waiting, stderr: this.stderr.waiting };
  }

  /** Starts are known to a tick (10 ms): a background job started just before `sinceMs` may be taken along. */
  async signalForeground(signal: InterruptSignal, sinceMs: number): Promise<number> {
    if (this.#shell === undefined) return 0;
    const since = this.#clock.ticksAt(sinceMs);
    const roots = childrenOf(this.#shell.pid).filter((child) => child.startTicks >= since);
    const number = constants.signals[signal];
    return withDescendants(roots).filter((process) => signalProcess(process, number)).length;
  }

  channels(): Promise<ChannelState> {
    return this.#command.channels();
  }

  async signalShell(signalNumber: number): Promise<void> {
    if (this.#shell !== undefined) signalProcess(this.#shell, signalNumber);
  }

  kill(): void {
    this.#command.kill();
  }
}
