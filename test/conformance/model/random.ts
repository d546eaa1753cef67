/** A stream of random choices that one number repeats exactly. */
export class Random {
  readonly seed: number;
  #state: number;

  constructor(seed: number) {
    this.seed = seed;
    this.#state = seed >>> 0;
  }

  /** Mulberry32: 32 bits of state are plenty for choosing operations. */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** An integer from 0 up to, not including, the bound. */
  below(bound: number): number {
    return this.#next() % bound;
  }

  between(lowest: number, highest: number): number {
    return lowest + this.below(highest - lowest + 1);
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.below(choices.length)];
    if (choice === undefined) throw new Error("nothing to pick from");
    return choice;
  }

  /** The key of one row, rows of higher weight more often. */
  weighted<Key extends string>(weights: Readonly<Record<Key, number>>): Key {
    const rows = Object.entries(weights) as [Key, number][];
    let at = this.below(rows.reduce((sum, [, weight]) => sum + weight, 0));
    for (const [key, weight] of rows) {
      at -= weight;
      if (at < 0) return key;
    }
    throw new Error("weights changed while choosing");
  }

  /** Printable text, so that a difference can be read. */
  text(length: number): string {
    const letter = String.fromCharCode(97 + this.below(26));
    return `${letter}${this.below(1_000_000)}`.padEnd(length, letter).slice(0, length);
  }
}
