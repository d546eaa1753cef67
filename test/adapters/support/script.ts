import type { Call } from "./contract.ts";

/** What a scripted model does next, and what it was told so far. */
export class Script {
  readonly #calls: readonly Call[];
  #next = 0;
  /** The outputs of its calls, in their order. */
  readonly told = new Map<string, string>();

  constructor(calls: readonly Call[]) {
    this.#calls = calls;
  }

  /** The next call, or undefined when the work is done. */
  next(): (Call & { readonly id: string }) | undefined {
    const call = this.#calls[this.#next];
    if (call === undefined) return undefined;
    this.#next += 1;
    return { ...call, id: `call-${this.#next}` };
  }

  hear(id: string, output: string): void {
    this.told.set(id, output);
  }

  get outputs(): readonly string[] {
    return [...this.told.values()];
  }
}
