/** One sandbox has at most so many times what is still free. */
const SHARES = 7;

/**
 * A part of the server's descriptors that all sandboxes share for one purpose; others need the rest. What cannot be let go of is
 * counted also beyond it.
 */
export class DescriptorRoom {
  #free: number;

  constructor(descriptors: number) {
    this.#free = descriptors;
  }

  get isFull(): boolean {
    return this.#free <= 0;
  }

  /** For one who has so many already: nobody gets all of it, whoever comes later finds some. */
  takeShare(count: number, own: number): boolean {
    if (own + count > SHARES * (this.#free - count)) return false;
    this.hold(count);
    return true;
  }

  take(): boolean {
    if (this.isFull) return false;
    this.hold();
    return true;
  }

  hold(count = 1): void {
    this.#free -= count;
  }

  giveBack(count = 1): void {
    this.#free += count;
  }
}
