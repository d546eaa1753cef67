import type { Caller } from "../posix/caller.ts";
import { SystemCallError } from "../posix/caller.ts";
import type { Argument, Step } from "./operations.ts";

/** A tree and the process that works in it. */
export interface Side {
  readonly root: string;
  readonly caller: Caller;
}

/** Takes steps on one side and keeps the descriptors they open. What a step gave becomes a value that two sides can compare. */
export class StepRunner {
  readonly #side: Side;
  readonly #comparable: (step: Step, value: unknown) => unknown;
  readonly #slots = new Map<number, number>();

  constructor(side: Side, comparable: (step: Step, value: unknown) => unknown) {
    this.#side = side;
    this.#comparable = comparable;
  }

  /** Every slot that the step names is open. */
  canTake(step: Step): boolean {
    return step.args.every(
      (argument) => typeof argument !== "object" || "path" in argument || this.#slots.has(argument.slot),
    );
  }

  get openSlots(): number[] {
    return [...this.#slots.keys()];
  }

  /** The comparable value, or the name of the errno. */
  async take(step: Step): Promise<unknown> {
    const args = step.args.map((argument) => this.#resolve(argument));
    try {
      const value = await this.#side.caller.call(step.name, ...args);
      if (step.opens !== undefined) this.#slots.set(step.opens, value as number);
      if (step.opens !== undefined) return "opened";
      return step.name === "close" ? this.#closed(step.args[0]) : this.#comparable(step, value);
    } catch (error) {
      if (error instanceof SystemCallError) return error.code;
      throw error;
    }
  }

  #resolve(argument: Argument): string | number {
    if (typeof argument !== "object") return argument;
    return "path" in argument ? `${this.#side.root}/${argument.path}` : (this.#slots.get(argument.slot) ?? -1);
  }

  #closed(argument: Argument | undefined): string {
    if (typeof argument === "object" && "slot" in argument) this.#slots.delete(argument.slot);
    return "closed";
  }
}

export function isErrno(result: unknown): boolean {
  return typeof result === "string" && /^E[A-Z0-9]+$/.test(result);
}
