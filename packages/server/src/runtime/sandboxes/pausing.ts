import { type Caller, SERVER } from "../caller.ts";
import type { SandboxRecord } from "../store/store.ts";
import { LONGEST_TIMER_MS } from "../waiting.ts";
import type { Parts } from "./parts.ts";
import type { Resident, Running } from "./resident.ts";
import { isHeld, type State, type Step } from "./state.ts";

/** A sandbox that runs for a call, until that lets go of it. */
export interface Entered extends Running, Disposable {}

/** Pauses and resumes sandboxes, and lets in what needs a process. */
export class Pausing {
  readonly #parts: Pick<Parts, "witness" | "log">;

  constructor(parts: Pick<Parts, "witness" | "log">) {
    this.#parts = parts;
  }

  /**
   * For every call that needs a process. A sandbox that paused by itself runs again, and none does while the call is there.
   * What runs a command finds the codebase as it is now.
   */
  async enter(caller: Caller, resident: Resident, { command = false } = {}): Promise<Entered> {
    resident.requireRunning();
    resident.calls += 1;
    const leave = (): void => {
      resident.calls -= 1;
      resident.asked();
      this.rest(resident);
    };
    try {
      // One that is about to pause by itself does so first, and then runs again.
      if (resident.underway === "doze" || isHeld(resident.state)) await this.#take("wake", caller, resident);
      const running = resident.requireRunning();
      if (command && running.lookAgain !== undefined) await running.lookAgain();
      return { ...running, [Symbol.dispose]: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  pause(caller: Caller, resident: Resident): Promise<SandboxRecord> {
    return this.#take("pause", caller, resident);
  }

  resume(caller: Caller, resident: Resident): Promise<SandboxRecord> {
    return this.#take("resume", caller, resident);
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
      Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS),
    );
    resident.idleTimer.unref();
  }

  #doze(resident: Resident): Promise<void> {
    return resident.turns.run(async () => {
      if (isIdle(resident)) await this.#become("doze", SERVER, resident);
      else this.rest(resident);
    });
  }

  #take(step: Step, caller: Caller, resident: Resident): Promise<SandboxRecord> {
    return resident.turns.run(() => this.#become(step, caller, resident));
  }

  async #become(step: Step, caller: Caller, resident: Resident): Promise<SandboxRecord> {
    const { sandbox } = resident.requireRunning();
    const hold = (state: State): Promise<void> => (isHeld(state) ? sandbox.pause() : sandbox.resume());
    const before = resident.state;
    const state = await resident.step(step, { work: hold, undo: hold });
    if (state === before) return resident.record;
    const data = isHeld(state) ? { data: { idle: state === "IDLE" } } : {};
    this.#parts.witness.tell(isHeld(state) ? "sandbox_paused" : "sandbox_resumed", resident, caller, data);
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

function isAtRest({ state, running, calls }: Resident): boolean {
  return running !== undefined && state === "RUNNING" && calls === 0;
}

function isIdle(resident: Resident): boolean {
  return isAtRest(resident) && performance.now() >= resident.askedAtMs + resident.record.idlePauseMs;
}
