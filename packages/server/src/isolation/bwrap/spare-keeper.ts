import { type MakeSpareJob, Spare } from "./spare.ts";
import { type Order, orderFile } from "./spare-order.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;

/** Keeps one spare for a box while it runs, and makes the next one when it is taken or dies. */
export class SpareKeeper {
  readonly #makeJob: MakeSpareJob;
  readonly #hasRoom: () => Promise<boolean>;
  #spare: Spare | undefined;
  #isActive = false;
  #isMaking = false;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  /** The last one was of no use: the next is made after a pause, however many commands come. */
  #isFailing = false;

  constructor(options: {
    makeJob: MakeSpareJob;
    /** Whether the limits of the box let the processes of a spare in now. */
    hasRoom: () => Promise<boolean>;
  }) {
    this.#makeJob = options.makeJob;
    this.#hasRoom = options.hasRoom;
  }

  /** The one that waits, or is being made. */
  get current(): Spare | undefined {
    return this.#spare;
  }

  start(): void {
    this.#isActive = true;
    this.#isFailing = false;
    this.#pauseMs = FIRST_PAUSE_MS;
    void this.#make();
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

  /** Makes the next one, now that one was taken or there may be room again. */
  refill(): void {
    if (!this.#isFailing) void this.#make();
  }

  async #make(): Promise<void> {
    if (!this.#isActive || this.#isMaking || this.#spare !== undefined) return;
    clearTimeout(this.#timer);
    this.#isMaking = true;
    const hasRoom = await this.#hasRoom().catch(() => false);
    this.#isMaking = false;
    if (!this.#isActive) return;
    const spare = hasRoom ? this.#tryToMake() : undefined;
    this.#isFailing = hasRoom && spare === undefined;
    if (spare === undefined) return this.#makeLater();
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
    if (this.#spare === spare) this.#spare = undefined;
    this.#isFailing = true;
    if (this.#isActive && this.#spare === undefined) this.#makeLater();
  }

  #makeLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#make(), this.#pauseMs).unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }
}
