/** What sessions are made of on some server. */
interface SessionKind {
  create(id: string, signal: AbortSignal): Promise<void>;
  close(id: string): Promise<void>;
}

/**
 * Sessions of a server, each used by one execution at a time: two commands in one session can spoil it. No more than a few,
 * since servers drop the sessions of those who open many.
 */
export class SessionPool {
  readonly #kind: SessionKind;
  readonly #prefix: string;
  readonly #limit: number;
  readonly #idle: string[] = [];
  readonly #known = new Set<string>();
  #waiters: (() => void)[] = [];
  #made = 0;
  #taken = 0;

  constructor(kind: SessionKind, { prefix, limit }: { readonly prefix: string; readonly limit: number }) {
    this.#kind = kind;
    this.#prefix = prefix;
    this.#limit = limit;
  }

  /** One that nobody else uses. Always a new one if `fresh`. */
  async take(signal: AbortSignal, { fresh = false }: { readonly fresh?: boolean } = {}): Promise<string> {
    while (this.#taken >= this.#limit) await this.#turn(signal);
    this.#taken += 1;
    try {
      const idle = fresh ? undefined : this.#idle.pop();
      if (idle !== undefined) return idle;
      // Those that are kept for later count: the server's limit is for all of them.
      const spare = this.#known.size >= this.#limit ? this.#idle.pop() : undefined;
      if (spare !== undefined) await this.#close(spare);
      this.#made += 1;
      const id = `${this.#prefix}-${this.#made}`;
      this.#known.add(id);
      await this.#kind.create(id, signal);
      return id;
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  /** It is as it was, and good for others. */
  giveBack(id: string): void {
    this.#idle.push(id);
    this.#release();
  }

  /** Nobody is to use it any more. */
  async discard(id: string): Promise<void> {
    await this.#close(id);
    this.#release();
  }

  async close(): Promise<void> {
    this.#idle.length = 0;
    await Promise.all([...this.#known].map((id) => this.#close(id)));
  }

  /** A session that cannot be closed is the server's to evict. */
  async #close(id: string): Promise<void> {
    this.#known.delete(id);
    await this.#kind.close(id).catch(() => {});
  }

  #release(): void {
    this.#taken -= 1;
    this.#waiters.shift()?.();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (): void => {
      this.#waiters = this.#waiters.filter((waiter) => waiter !== resolve);
      reject(signal.reason);
    };
    this.#waiters.push(resolve);
    signal.addEventListener("abort", leave, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }
}
