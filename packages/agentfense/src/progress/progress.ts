import { warn } from "../output.ts";
import { columnsOf } from "../table.ts";
import { showSize } from "../wording.ts";

const WIDTH = 24;
const REDRAW_MS = 100;
/** What is over by then needs no bar. */
const FIRST_DRAWN_MS = 300;

/** What is needed of a stream: whether somebody watches, and how wide a line is. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** How far long work is, on one line of a terminal; nothing at all where nobody watches. Erased at the end. */
export class Progress implements Disposable {
  readonly #screen: Screen;
  readonly #label: string;
  readonly #clock: () => number;
  #nextDrawnMs: number;
  #isDrawn = false;

  constructor(screen: Screen, label: string, clock: () => number = () => performance.now()) {
    this.#screen = screen;
    this.#label = label;
    this.#clock = clock;
    this.#nextDrawnMs = clock() + FIRST_DRAWN_MS;
  }

  /** Bytes of a known number. */
  show(done: number, total: number): void {
    this.#draw(() => progressLine(this.#label, done, total));
  }

  /** Things, of a known number or not. */
  count(done: number, total: number | undefined, noun: string): void {
    this.#draw(() =>
      total === undefined ? `${this.#label} ${done} ${noun}` : progressLine(this.#label, done, total, noun),
    );
  }

  #draw(line: () => string): void {
    const now = this.#clock();
    if (this.#screen.isTTY !== true || now < this.#nextDrawnMs) return;
    this.#nextDrawnMs = now + REDRAW_MS;
    this.#isDrawn = true;
    this.#screen.write(`\r${fitting(line(), this.#screen.columns || 80)}\u001b[K`);
  }

  /** Leaves the line as it was before. */
  [Symbol.dispose](): void {
    if (this.#isDrawn) this.#screen.write("\r\u001b[K");
    this.#isDrawn = false;
  }
}

/** "uploading ██████░░░░░░  50 %  1.0 KiB of 2.0 KiB"; with a noun, so many of those instead of bytes. */
export function progressLine(label: string, done: number, total: number, noun?: string): string {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(part * WIDTH);
  const bar = "█".repeat(filled) + "░".repeat(WIDTH - filled);
  const amount = noun === undefined ? `${showSize(done)} of ${showSize(total)}` : `${done} of ${total} ${noun}`;
  return `${label.padEnd(9)} ${bar} ${String(Math.floor(part * 100)).padStart(3)} %  ${amount}`;
}

/** A line that wraps could not be erased. */
function fitting(line: string, columns: number): string {
  let shown = line;
  while (columnsOf(shown) >= columns) shown = shown.slice(0, -1);
  return shown;
}

/** "c0ffee123456: Pull complete": what an engine says about one layer. */
const LAYER = /^([0-9a-f]{12}): (.*)$/;
const DONE: ReadonlySet<string> = new Set(["Pull complete", "Already exists"]);

/** Follows what a container engine says while it fetches an image: a bar on a terminal, elsewhere its few sentences. */
export class PullProgress implements Disposable {
  readonly #progress: Progress;
  readonly #say: (sentence: string) => void;
  readonly #layers = new Map<string, boolean>();

  constructor(screen: Screen, say: (sentence: string) => void = warn, clock?: () => number) {
    this.#progress = new Progress(screen, "pulling", clock);
    this.#say = say;
  }

  /** One line of the engine's. */
  take(line: string): void {
    const [, layer, status] = LAYER.exec(line) ?? [];
    if (layer === undefined || status === undefined) {
      this.#progress[Symbol.dispose]();
      this.#say(line);
      return;
    }
    this.#layers.set(layer, this.#layers.get(layer) === true || DONE.has(status));
    const done = [...this.#layers.values()].filter((isDone) => isDone).length;
    this.#progress.count(done, this.#layers.size, "layers");
  }

  [Symbol.dispose](): void {
    this.#progress[Symbol.dispose]();
  }
}
