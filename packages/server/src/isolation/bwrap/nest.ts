import { DescriptorSet, readFrom, writeTo } from "./descriptors.ts";
import { type JobLine, jobLine, type Launcher, type NestLine } from "./launcher.ts";

/**
 * The process that starts one box's commands, inside the box's control groups. Lines for it may be written at once; it
 * reads them when it is there.
 */
export class Nest {
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  /** Which launcher made it. */
  readonly generation: number;
  readonly #commands: ReturnType<typeof writeTo>;
  readonly #lent = new DescriptorSet();
  /** It has its descriptors: from now on its end shows. */
  readonly #settled = Promise.withResolvers<void>();

  constructor(launcher: Launcher, network: NestLine["network"]) {
    const lent = this.#lent;
    try {
      const commands = lent.pipe();
      const status = lent.pipe();
      this.#commands = writeTo(lent.release(commands.writeEnd));
      const report = readFrom(lent.release(status.readEnd));
      report.once("data", () => {
        lent.close();
        this.#settled.resolve();
      });
      this.ended = new Promise((resolve) => report.once("close", resolve)).then(() => {
        this.#settled.resolve();
        this.#commands.destroy();
      });
      this.generation = launcher.makeNest({ commands: commands.readEnd, status: status.writeEnd, network });
    } catch (error) {
      lent.close();
      throw error;
    }
  }

  /** Before any job: what cannot be entered ends the nest. */
  enter(controlGroups: readonly string[]): void {
    if (controlGroups.length > 0) this.#commands.write(`enter ${controlGroups.join(" ")}\n`);
  }

  submit(job: JobLine): void {
    this.#commands.write(jobLine(job));
  }

  /** The end of its input is its end; what it started dies with it. Not before it has opened that input: it would wait. */
  close(): void {
    void this.#settled.promise.then(() => this.#commands.destroy());
  }

  /** The launcher died, maybe before it made this one. */
  lost(): void {
    this.#lent.close();
  }
}

/** The box that took the last one goes first. */
const PREPARE_MS = 20;

/** Keeps a nest ready for the next box without a network: its network namespace takes several milliseconds. */
export class NestNursery {
  readonly #launcher: Launcher;
  readonly #network: NestLine["network"];
  #ready: Nest | undefined;
  #isClosed = false;

  constructor(launcher: Launcher, network: NestLine["network"]) {
    this.#launcher = launcher;
    this.#network = network;
  }

  /** Whether a box without a network stays in its nest's network namespace. */
  get hasNetwork(): boolean {
    return this.#network !== undefined;
  }

  prepare(): void {
    if (this.#network === undefined || this.#isClosed || this.#ready !== undefined) return;
    let nest: Nest;
    try {
      nest = new Nest(this.#launcher, this.#network);
    } catch {
      return; // a host without descriptors left; the box that comes next says so
    }
    this.#ready = nest;
    void nest.ended.then(() => {
      if (this.#ready === nest) this.#ready = undefined;
    });
  }

  take(options: { ownNetwork: boolean }): Nest {
    if (!options.ownNetwork) return new Nest(this.#launcher, undefined);
    setTimeout(() => this.prepare(), PREPARE_MS).unref();
    const ready = this.#ready;
    // One whose launcher died is about to be noticed, by launcherLost.
    if (ready === undefined || !this.#launcher.isAlive(ready.generation))
      return new Nest(this.#launcher, this.#network);
    this.#ready = undefined;
    return ready;
  }

  /** Whether what made it still lives, as far as is known. */
  isAlive(nest: Nest): boolean {
    return this.#launcher.isAlive(nest.generation);
  }

  launcherLost(generation: number): void {
    if (this.#ready?.generation === generation) this.#ready.lost();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const nest = this.#ready;
    nest?.close();
    await nest?.ended;
  }
}
