import type { Budget } from "../../budget.ts";

/** Kept of an output in any case, and of each when everybody's outputs together are too much. */
const LEAST = 64 * 1024;

/** What a command printed, the newest part of it. Offsets count characters from the very beginning, also of what is gone. */
export class OutputText {
  readonly #limit: number;
  readonly #budget: Budget;
  #text = "";
  /** The offset of what is kept. */
  #start = 0;

  constructor(limit: number, budget: Budget) {
    this.#limit = limit;
    this.#budget = budget;
  }

  get length(): number {
    return this.#text.length;
  }

  get end(): number {
    return this.#start + this.#text.length;
  }

  append(text: string): void {
    this.#text += text;
    this.#budget.add(text.length);
    const limit = this.#budget.isSpent ? LEAST : this.#limit;
    // Not with every piece: cutting copies.
    if (this.#text.length > limit * 1.25) this.#cut(limit);
  }

  /** Nobody will ask for it any more. */
  release(): void {
    this.#cut(0);
  }

  /** What came at or after an offset and is still there. */
  since(offset: number): string {
    return this.#text.slice(Math.max(0, offset - this.#start));
  }

  #cut(limit: number): void {
    const excess = this.#text.length - limit;
    this.#text = this.#text.slice(excess);
    this.#start += excess;
    this.#budget.add(-excess);
  }
}
