import { DescriptorSet, readFrom, writeTo } from "./descriptors.ts";
import { type JobLine, jobLine, type Launcher, type NestLine } from "./launcher.ts";

/**
 * The process that starts one box's commands, inside the box's control group. Lines for it may be written at once; it
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

  constructor(launcher: Launcher, options: Pick<NestLine, "network" | "entrances">) {
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
      this.generation = launcher.makeNest({ commands: commands.readEnd, status: status.writeEnd, ...options });
    } catch (error) {
      lent.close();
      throw error;
    }
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
