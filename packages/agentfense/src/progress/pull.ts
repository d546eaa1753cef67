import { warn } from "../output.ts";
import { Progress, type Screen } from "./progress.ts";

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
