import { type Caller, maySee } from "../caller.ts";
import { checkSandboxId } from "../ids.ts";
import type { SandboxRecordStatus } from "../store/store.ts";
import { sandboxNotFound, shuttingDown } from "./errors.ts";
import type { Resident } from "./resident.ts";

/** Every sandbox there is, for those who may find it. */
export class SandboxRegistry implements Iterable<Resident> {
  readonly #byId = new Map<string, Resident>();
  #isShut = false;

  /** From here on every call is refused. */
  shut(): void {
    this.#isShut = true;
  }

  requireOpen(): void {
    if (this.#isShut) throw shuttingDown();
  }

  add(resident: Resident): void {
    this.#byId.set(resident.id, resident);
  }

  remove(resident: Resident): void {
    this.#byId.delete(resident.id);
  }

  /** For a caller, who finds own ones alone. */
  find(caller: Caller, id: string): Resident {
    this.requireOpen();
    const resident = this.#byId.get(checkSandboxId(id));
    if (resident === undefined || !maySee(caller, resident.record.ownerId)) throw sandboxNotFound();
    resident.requirePresent();
    return resident;
  }

  /** For what needs a running sandbox: one that ran when the last server ended is about to run again. */
  async findReturned(caller: Caller, id: string): Promise<Resident> {
    const resident = this.find(caller, id);
    await resident.returning;
    resident.asked();
    return resident;
  }

  of(codebaseId: string): Resident[] {
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

  [Symbol.iterator](): Iterator<Resident> {
    return this.#byId.values();
  }
}
