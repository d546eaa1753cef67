import type { Backend, BackendName } from "./backend/backend.ts";
import { IsolationError } from "./backend/isolation-error.ts";

export interface BackendsParts {
  readonly allowed: readonly BackendName[];
  /** What the backend leans on is put on `parts`, and closed after it. */
  open(runtime: BackendName, parts: AsyncDisposableStack): Promise<Backend>;
  /** Called before a backend that has just been opened is used, with all that are open. */
  opened(backends: ReadonlyMap<BackendName, Backend>): Promise<void>;
}

/** The backends that an instance may use: those it opened at once, and those that open when the first sandbox asks. */
export class Backends implements AsyncDisposable {
  readonly #given: BackendsParts;
  readonly #opening = new Map<BackendName, Promise<Backend>>();
  readonly #opened = new Map<BackendName, Backend>();
  readonly #parts = new AsyncDisposableStack();

  constructor(given: BackendsParts) {
    this.#given = given;
  }

  /** Those that are open now. */
  get opened(): ReadonlyMap<BackendName, Backend> {
    return this.#opened;
  }

  /** Opens the backend unless it is open. What is missing for it may be there at the next call. */
  get(runtime: BackendName): Promise<Backend> {
    if (!this.#given.allowed.includes(runtime)) {
      return Promise.reject(new IsolationError("RUNTIME_UNAVAILABLE", `the runtime ${runtime} is not enabled here`));
    }
    let opening = this.#opening.get(runtime);
    if (opening === undefined) {
      opening = this.#begin(runtime);
      this.#opening.set(runtime, opening);
      opening.catch(() => this.#opening.delete(runtime));
    }
    return opening;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#opening.values());
    await this.#parts.disposeAsync();
  }

  async #begin(runtime: BackendName): Promise<Backend> {
    await using undo = new AsyncDisposableStack();
    const backend = undo.use(await this.#given.open(runtime, undo));
    await this.#given.opened(new Map([...this.#opened, [runtime, backend]]));
    this.#parts.use(undo.move());
    this.#opened.set(runtime, backend);
    return backend;
  }
}
