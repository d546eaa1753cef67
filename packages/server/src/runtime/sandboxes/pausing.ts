import { type Caller, SERVER } from "../caller.ts";
import type { SandboxMetadata, SandboxRecord } from "../store/store.ts";
import { sandboxPaused } from "./errors.ts";
import type { LogLine } from "./options.ts";
import type { Resident, Running } from "./resident.ts";
import type { Witness } from "./witness.ts";

/** The reason of a pause that nobody asked for: the next call that needs a process ends it. */
export const IDLE = "idle";
/** A timer cannot wait longer. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

export interface PausingParts {
  readonly store: SandboxMetadata;
  readonly witness: Witness;
  readonly log: (line: LogLine) => void;
}

/** A sandbox that runs for a call, until that lets go of it. */
export interface Entered extends Running, Disposable {}

/** Pauses and resumes sandboxes, and lets in what needs a process. */
export class Pausing {
  readonly #parts: PausingParts;

  constructor(parts: PausingParts) {
    this.#parts = parts;
  }

  /** For every call that needs a process. A sandbox that paused by itself runs again, and none does while the call is there. */
  async enter(caller: Caller, resident: Resident): Promise<Entered> {
    resident.requireRunning();
    resident.calls += 1;
    const leave = (): void => {
      resident.calls -= 1;
      resident.asked();
      this.rest(resident);
    };
    try {
      if (resident.isDozing || resident.record.status === "PAUSED") await this.#wake(caller, resident);
      return { ...resident.requireRunning(), [Symbol.dispose]: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  pause(caller: Caller, resident: Resident): Promise<SandboxRecord> {
    return resident.turns.take(() => this.#become(caller, resident, "PAUSED", ""));
  }

  resume(caller: Caller, resident: Resident): Promise<SandboxRecord> {
    return resident.turns.take(() => this.#become(caller, resident, "RUNNING", ""));
  }

  /** It may have nothing to do from here on: when that lasts, it pauses. */
  rest(resident: Resident): void {
    const { idlePauseMs } = resident.record;
    if (idlePauseMs === 0 || !isAtRest(resident) || resident.idleTimer !== undefined) return;
    const leftMs = resident.askedAtMs + idlePauseMs - performance.now();
    resident.idleTimer = setTimeout(
      () => {
        resident.idleTimer = undefined;
        if (!isIdle(resident)) this.rest(resident);
        else this.#doze(resident).catch((error: unknown) => this.#couldNot(resident, error));
      },
      Math.min(Math.max(leftMs, 0), LONGEST_WAIT_MS),
    );
    resident.idleTimer.unref();
  }

  #doze(resident: Resident): Promise<void> {
    return resident.turns.take(async () => {
      if (!isIdle(resident)) return this.rest(resident);
      resident.isDozing = true; // whoever enters from here on waits for the pause, and ends it
      await this.#become(SERVER, resident, "PAUSED", IDLE).finally(() => {
        resident.isDozing = false;
      });
    });
  }

  #wake(caller: Caller, resident: Resident): Promise<void> {
    return resident.turns.take(async () => {
      const { status, statusReason } = resident.record;
      if (status === "PAUSED" && statusReason !== IDLE) throw sandboxPaused();
      await this.#become(caller, resident, "RUNNING", "");
    });
  }

  async #become(
    caller: Caller,
    resident: Resident,
    status: "RUNNING" | "PAUSED",
    statusReason: string,
  ): Promise<SandboxRecord> {
    const { sandbox } = resident.requireRunning();
    const { record } = resident;
    if (record.status === status && record.statusReason === statusReason) return record;
    const turnTo = (state: SandboxRecord["status"]): Promise<void> =>
      state === "PAUSED" ? sandbox.pause() : sandbox.resume();
    await turnTo(status);
    try {
      await resident.update(this.#parts.store, { status, statusReason });
    } catch (error) {
      await turnTo(record.status);
      throw error;
    }
    const data = status === "PAUSED" ? { data: { idle: statusReason === IDLE } } : {};
    this.#parts.witness.tell(status === "PAUSED" ? "sandbox_paused" : "sandbox_resumed", resident, caller, data);
    resident.asked();
    this.rest(resident);
    return resident.record;
  }

  #couldNot(resident: Resident, error: unknown): void {
    if (resident.departure !== undefined || resident.running === undefined) return;
    this.#parts.log({ level: "warn", message: "an idle sandbox could not be paused", sandboxId: resident.id, error });
    resident.asked();
    this.rest(resident);
  }
}

function isAtRest({ record, running, calls }: Resident): boolean {
  return running !== undefined && record.status === "RUNNING" && calls === 0;
}

function isIdle(resident: Resident): boolean {
  return isAtRest(resident) && performance.now() >= resident.askedAtMs + resident.record.idlePauseMs;
}
