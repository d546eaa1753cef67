import { showSize } from "../remote/show.ts";

const WIDTH = 24;
const REDRAW_MS = 100;

/** How far something is, on one line of a terminal; nothing at all where nobody watches. */
export class Progress implements Disposable {
  readonly #stream: NodeJS.WriteStream;
  readonly #label: string;
  readonly #total: number;
  #done = 0;
  #drawnAtMs = 0;

  constructor(stream: NodeJS.WriteStream, label: string, total: number) {
    this.#stream = stream;
    this.#label = label;
    this.#total = total;
  }

  add(count: number): void {
    this.#done += count;
    const now = performance.now();
    if (!this.#stream.isTTY || now - this.#drawnAtMs < REDRAW_MS) return;
    this.#drawnAtMs = now;
    this.#stream.write(`\r${progressLine(this.#label, this.#done, this.#total)}\u001b[K`);
  }

  /** Leaves the line as it was before. */
  [Symbol.dispose](): void {
    if (this.#drawnAtMs > 0) this.#stream.write("\r\u001b[K");
  }
}

export function progressLine(label: string, done: number, total: number): string {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(part * WIDTH);
  const bar = "█".repeat(filled) + "░".repeat(WIDTH - filled);
  return `${label.padEnd(9)} ${bar} ${String(Math.floor(part * 100)).padStart(3)} %  ${showSize(done)} of ${showSize(total)}`;
}
