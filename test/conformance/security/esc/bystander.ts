import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A service of the host that listens everywhere and tells who came; see bystander.py. */
export class Bystander implements AsyncDisposable {
  readonly port: number;
  readonly socketName: string;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  private constructor(process: ChildProcessWithoutNullStreams, lines: AsyncIterator<string>, about: string) {
    this.#process = process;
    this.#lines = lines;
    ({ port: this.port, socketName: this.socketName } = JSON.parse(about) as { port: number; socketName: string });
  }

  /** `network` is the path of a network namespace to listen in, instead of the host's. */
  static async start(network?: string): Promise<Bystander> {
    const command = ["python3", join(import.meta.dirname, "bystander.py")];
    const [program = "", ...args] = network === undefined ? command : ["nsenter", `--net=${network}`, ...command];
    const child = spawn(program, args);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { value } = await lines.next();
    if (value === undefined) throw new Error("the bystander did not start");
    return new Bystander(child, lines, value);
  }

  /** Everybody who came so far. */
  async heard(): Promise<string[]> {
    this.#process.stdin.write("\n");
    const { value } = await this.#lines.next();
    if (value === undefined) throw new Error("the bystander ended");
    return JSON.parse(value) as string[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, "close");
    this.#process.stdin.end();
    await ended;
  }
}
