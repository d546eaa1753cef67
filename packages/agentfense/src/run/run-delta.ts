import { join } from "node:path";
import { TemporaryHome } from "@agentfense/server/isolation";
import { readDeltaRecord, requireSameDirectory } from "../changes/kept-delta.ts";
import { requireDeltaApart } from "./placement.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/** Where the changes of a run go: a directory of the user's, or one that goes away with this unless it is kept. */
export class RunDelta implements AsyncDisposable {
  readonly path: string;
  readonly #temporary: TemporaryDelta | undefined;
  #isKept: boolean;

  private constructor(path: string, temporary: TemporaryDelta | undefined) {
    this.path = path;
    this.#temporary = temporary;
    this.#isKept = temporary === undefined;
  }

  static async open({ directory, keptDelta }: SandboxRequest): Promise<RunDelta> {
    if (keptDelta !== undefined) {
      requireSameDirectory(keptDelta, await readDeltaRecord(keptDelta), directory);
      return new RunDelta(keptDelta, undefined);
    }
    const temporary = await TemporaryDelta.create();
    try {
      requireDeltaApart(directory, temporary.path);
    } catch (error) {
      await temporary[Symbol.asyncDispose]();
      throw error;
    }
    return new RunDelta(temporary.path, temporary);
  }

  /** The changes are still there afterwards. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** Makes it last: there is work in it that is nowhere else. */
  async keep(): Promise<void> {
    this.#isKept = true;
    await this.#temporary?.keep();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#temporary?.[Symbol.asyncDispose]();
  }
}

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
