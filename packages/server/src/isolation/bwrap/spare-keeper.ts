import { type MakeSpareJob, Spare } from "./spare.ts";
import { type Order, orderFile } from "./spare-order.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;

/** Keeps one spare for a box while it runs and is idle, and makes the next one when it is idle again or the spare dies. */
export class SpareKeeper {
  readonly #makeJob: MakeSpareJob;
  readonly #isWanted: () => boolean;
  #spare: Spare | undefined;
  #isActive = false;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  /** The last one was of no use: the next is made after a pause, however many commands come. */
  #isFailing = false;

  constructor(options: {
    makeJob: MakeSpareJob;
    /** Whether a spare may be there now; when that changes, `refill` is called. */
    isWanted: () => boolean;
  }) {
    this.#makeJob = options.makeJob;
    this.#isWanted = options.isWanted;
  }

  /** The one that waits, or is being made. */
  get current(): Spare | undefined {
    return this.#spare;
  }

  start(): void {
    this.#isActive = true;
    this.#isFailing = false;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#make();
  }

  /** Whoever stops the box kills its jobs, the spare's among them. */
  stop(): void {
    this.#isActive = false;
    clearTimeout(this.#timer);
    this.#spare = undefined;
  }

  /** The spare with this order, be it ready or still in the making; nothing when there is none or the order is not for it. */
  give(order: Order): Spare | undefined {
    const spare = this.#spare;
    const file = spare === undefined ? undefined : orderFile(order);
    if (spare === undefined || file === undefined) return undefined;
    this.#spare = undefined;
    if (spare.job.isCurrent && spare.give(order, file)) return spare;
    spare.job.kill();
    return undefined;
  }

  /** Ends the spare: a command comes that cannot have it. */
  discard(): void {
    const spare = this.#spare;
    this.#spare = undefined;
    spare?.job.kill();
  }

  /** Makes the next one if it is wanted now. */
  refill(): void {
    if (!this.#isFailing) this.#make();
  }

  #make(): void {
    if (!this.#isActive || this.#spare !== undefined || !this.#isWanted()) return;
    clearTimeout(this.#timer);
    const spare = this.#tryToMake();
    this.#isFailing = spare === undefined;
    if (spare === undefined) {
      this.#makeLater();
      return;
    }
    this.#spare = spare;
    spare.job.started.then(
      () => this.#wasGood(),
      () => this.#wasLost(spare),
    );
  }

  #tryToMake(): Spare | undefined {
    try {
      return new Spare(this.#makeJob);
    } catch {
      return undefined; // a command meets the same shortage and tells of it
    }
  }

  #wasGood(): void {
    this.#isFailing = false;
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** It died while it waited, of the memory limit or by somebody's hand, or could not carry out its order. */
  #wasLost(spare: Spare): void {
    if (this.#spare === spare) {
      this.#spare = undefined;
      this.#isFailing = true;
    }
    if (this.#isActive && this.#spare === undefined && this.#isFailing) this.#makeLater();
  }

  #makeLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isFailing = false;
      this.#make();
    }, this.#pauseMs).unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }
}
