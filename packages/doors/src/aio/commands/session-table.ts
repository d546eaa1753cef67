import { Refusal } from "../envelope.ts";

/** What is kept under an id for a caller. */
interface Kept {
  readonly isBusy: boolean;
  lastUsedAt: Date;
  close(): Promise<void>;
}

/** Ids are chosen by clients. */
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** A bounded number of sessions: for a new one too many, the idle one that was not used for the longest time has to go. */
export class SessionTable<T extends Kept> {
  readonly #sessions = new Map<string, T | "opening">();
  readonly #limit: number;
  readonly #what: string;

  constructor(what: string, limit: number) {
    this.#what = what;
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  get all(): readonly (readonly [string, T])[] {
    return [...this.#sessions].flatMap(([id, session]) => (session === "opening" ? [] : [[id, session] as const]));
  }

  find(id: string): T | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || session === "opening") return undefined;
    session.lastUsedAt = new Date();
    return session;
  }

  require(id: string): T {
    const session = this.find(id);
    if (session !== undefined) return session;
    throw new Refusal(`${this.#what} not found: ${id}`, {
      status: 404,
      hint: "it may have been closed, or made room for another one",
    });
  }

  async open(id: string, open: () => Promise<T>): Promise<T> {
    if (!SESSION_ID.test(id)) throw new Refusal("a session id has letters, digits and . _ : - only", { status: 400 });
    if (this.#sessions.has(id)) throw new Refusal(`${this.#what} is there already: ${id}`, { status: 409 });
    const evicted = this.#makeRoom();
    // The place is taken before anything is waited for: two requests do not make one too many.
    this.#sessions.set(id, "opening");
    try {
      await evicted?.close();
      const session = await open();
      if (this.#sessions.get(id) === "opening") {
        this.#sessions.set(id, session);
        return session;
      }
      await session.close();
    } catch (error) {
      this.#sessions.delete(id);
      throw error;
    }
    throw new Refusal(`all are being closed: ${this.#what}`, { status: 409 });
  }

  async remove(id: string): Promise<void> {
    const session = this.require(id);
    this.#sessions.delete(id);
    await session.close();
  }

  /** Forgets one that is gone already. */
  forget(id: string): void {
    this.#sessions.delete(id);
  }

  async clear(): Promise<void> {
    const { all } = this;
    // With those that are being opened: they find that they are not wanted any more.
    this.#sessions.clear();
    await Promise.allSettled(all.map(([, session]) => session.close()));
  }

  #makeRoom(): T | undefined {
    if (this.#sessions.size < this.#limit) return undefined;
    const [oldest] = this.all
      .filter(([, { isBusy }]) => !isBusy)
      .sort(([, a], [, b]) => a.lastUsedAt.getTime() - b.lastUsedAt.getTime());
    if (oldest === undefined) {
      throw new Refusal(`there are ${this.#limit} of them already, and all are busy: ${this.#what}`, {
        status: 429,
        hint: "close one first",
      });
    }
    this.#sessions.delete(oldest[0]);
    return oldest[1];
  }
}
