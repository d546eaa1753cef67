import { type Caller, maySee } from "../caller.ts";
import { checkSandboxId } from "../ids.ts";
import type { SandboxRecordStatus } from "../store/store.ts";
import { sandboxNotFound } from "./errors.ts";
import type { Resident } from "./resident.ts";

/** Every sandbox there is. */
export class Residents implements Iterable<Resident> {
  readonly #byId = new Map<string, Resident>();

  add(resident: Resident): void {
    this.#byId.set(resident.id, resident);
  }

  remove(resident: Resident): void {
    this.#byId.delete(resident.id);
  }

  /** For a caller, who finds own ones alone. */
  find(caller: Caller, id: string): Resident {
    const resident = this.#byId.get(checkSandboxId(id));
    if (resident === undefined || !maySee(caller, resident.record.ownerId)) throw sandboxNotFound();
    resident.requirePresent();
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

  [Symbol.iterator](): Iterator<Resident> {
    return this.#byId.values();
  }
}
