import { type Caller, maySee } from "../caller.ts";
import { checkSandboxId } from "../ids.ts";
import type { SandboxRecordStatus } from "../store/store.ts";
import { sandboxNotFound, shuttingDown } from "./refusals.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";

/** Every sandbox there is, for those who may find it. */
export class SandboxRegistry implements Iterable<RegisteredSandbox> {
  readonly #byId = new Map<string, RegisteredSandbox>();
  #isShut = false;

  /** From here on every call is refused. */
  shut(): void {
    this.#isShut = true;
  }

  requireOpen(): void {
    if (this.#isShut) throw shuttingDown();
  }

  add(registered: RegisteredSandbox): void {
    this.#byId.set(registered.id, registered);
  }

  remove(registered: RegisteredSandbox): void {
    this.#byId.delete(registered.id);
  }

  /** For a caller, who finds own ones alone. */
  find(caller: Caller, id: string): RegisteredSandbox {
    this.requireOpen();
    const registered = this.#byId.get(checkSandboxId(id));
    if (registered === undefined || !maySee(caller, registered.record.ownerId)) throw sandboxNotFound();
    registered.requirePresent();
    return registered;
  }

  /** For what needs a running sandbox: one that ran when the last server ended is about to run again. */
  async findReturned(caller: Caller, id: string): Promise<RegisteredSandbox> {
    const registered = this.find(caller, id);
    await registered.returning;
    registered.asked();
    return registered;
  }

  of(codebaseId: string): RegisteredSandbox[] {
    return [...this].filter(({ record }) => record.codebaseId === codebaseId);
  }

  counts(): Record<SandboxRecordStatus, number> {
    const counts = { PENDING: 0, RUNNING: 0, PAUSED: 0, STOPPED: 0, ERROR: 0 };
    for (const { record } of this) counts[record.status] += 1;
    return counts;
  }

  /** What ended because the server does is told as that. */
  async ending<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.requireOpen();
      throw error;
    }
  }

  [Symbol.iterator](): Iterator<RegisteredSandbox> {
    return this.#byId.values();
  }
}
