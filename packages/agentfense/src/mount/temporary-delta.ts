import { join } from "node:path";
import { TemporaryHome } from "@agentfense/server/isolation";

/** A delta that lives as long as the process. */
export class TemporaryDelta implements AsyncDisposable {
  readonly path: string;
  readonly #home: TemporaryHome;

  private constructor(home: TemporaryHome) {
    this.#home = home;
    this.path = join(home.path, "delta");
  }

  static async create(): Promise<TemporaryDelta> {
    return new TemporaryDelta(await TemporaryHome.create({ prefix: "agentfense-delta-" }));
  }

  /** From now on it stays where it is. */
  async keep(): Promise<void> {
    await this.#home.keep();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#home[Symbol.asyncDispose]();
  }
}
