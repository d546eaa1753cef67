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
  #isOver = false;

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
        this.#isOver = true;
        this.#settled.resolve();
        this.#commands.destroy();
      });
      this.generation = launcher.makeNest({ commands: commands.readEnd, status: status.writeEnd, network });
    } catch (error) {
      lent.close();
      throw error;
    }
  }

  get isOver(): boolean {
    return this.#isOver;
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
    const nest = new Nest(this.#launcher, this.#network);
    this.#ready = nest;
    void nest.ended.then(() => {
      if (this.#ready === nest) this.#ready = undefined;
    });
  }

  take(options: { ownNetwork: boolean }): Nest {
    if (!options.ownNetwork) return new Nest(this.#launcher, undefined);
    const nest = this.#ready ?? new Nest(this.#launcher, this.#network);
    this.#ready = undefined;
    // When the box at hand has had its turn on this thread.
    setTimeout(() => this.prepare(), 20).unref();
    return nest;
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
