import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { ChannelState, InterruptSignal, ProcessExit, ShellProcess } from "../backend/backend.ts";
import type { BootClock } from "./boot-clock.ts";
import { childrenOf, type HostProcess, signalProcess, withDescendants } from "./host-processes.ts";
import type { Job } from "./job.ts";
import { pipesOf } from "./process.ts";

/** A shell in a bwrap of its own, seen and signalled from the host: nothing inside has to cooperate. */
export class BwrapShell implements ShellProcess {
  readonly commands: Writable;
  readonly status: Readable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ProcessExit>;
  readonly #job: Job;
  readonly #shell: HostProcess | undefined;
  readonly #clock: BootClock;
  readonly oomKills?: () => Promise<number>;

  constructor(
    job: Job,
    exit: Promise<ProcessExit>,
    options: { clock: BootClock; oomKills?: (() => Promise<number>) | undefined },
  ) {
    const { stdin, stdout, stderr } = pipesOf(job);
    if (stdin === undefined || job.channel === undefined) throw new TypeError("this job is no shell");
    this.commands = stdin;
    this.status = job.channel;
    this.stdout = stdout;
    this.stderr = stderr;
    this.exit = exit;
    this.#job = job;
    this.#shell = job.main;
    this.#clock = options.clock;
    if (options.oomKills !== undefined) this.oomKills = options.oomKills;
  }

  async pendingOutput(): Promise<{ stdout: number; stderr: number }> {
    return this.#job.pendingOutput();
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
    return this.#job.channels();
  }

  async signalShell(signalNumber: number): Promise<void> {
    if (this.#shell !== undefined) signalProcess(this.#shell, signalNumber);
  }

  kill(): void {
    this.#job.kill();
  }
}
