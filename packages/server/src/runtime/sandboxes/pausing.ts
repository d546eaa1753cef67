import { type Caller, SERVER } from "../caller.ts";
import type { SandboxRecord } from "../store/store.ts";
import { LONGEST_TIMER_MS } from "../waiting.ts";
import type { Parts } from "./parts.ts";
import type { RegisteredSandbox, Running } from "./registered-sandbox.ts";
import { isHeld, type State, type Step } from "./state.ts";

/** A sandbox that runs for a call, until that lets go of it. */
export interface Entered extends Running, Disposable {}

/** Pauses and resumes sandboxes, and lets in what needs a process. */
export class Pausing {
  readonly #parts: Pick<Parts, "auditTrail" | "log">;

  constructor(parts: Pick<Parts, "auditTrail" | "log">) {
    this.#parts = parts;
  }

  /**
   * For every call that needs a process. A sandbox that paused by itself runs again, and none does while the call is there.
   * What runs a command finds the codebase as it is now.
   */
  async enter(caller: Caller, registered: RegisteredSandbox, { command = false } = {}): Promise<Entered> {
    registered.requireRunning();
    registered.calls += 1;
    const leave = (): void => {
      registered.calls -= 1;
      registered.asked();
      this.rest(registered);
    };
    try {
      // One that is about to pause by itself does so first, and then runs again.
      if (registered.underway === "doze" || isHeld(registered.state)) await this.#take("wake", caller, registered);
      const running = registered.requireRunning();
      if (command && running.lookAgain !== undefined) await running.lookAgain();
      return { ...running, [Symbol.dispose]: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  pause(caller: Caller, registered: RegisteredSandbox): Promise<SandboxRecord> {
    return this.#take("pause", caller, registered);
  }

  /** At its expiry, in place of its end: it is kept until then. Not when its expiry was said anew meanwhile. */
  expire(registered: RegisteredSandbox, keptUntilMs: number): Promise<void> {
    const { expiresAtMs } = registered.record;
    return registered.turns.run(async () => {
      if (registered.record.expiresAtMs !== expiresAtMs || registered.state === "PAUSED") return;
      await this.#become("pause", SERVER, registered);
      await registered.update({ expiresAtMs: keptUntilMs });
    });
  }

  resume(caller: Caller, registered: RegisteredSandbox): Promise<SandboxRecord> {
    return this.#take("resume", caller, registered);
  }

  /** It may have nothing to do from here on: when that lasts, it pauses. */
  rest(registered: RegisteredSandbox): void {
    const { idlePauseMs } = registered.record;
    if (idlePauseMs === 0 || !isAtRest(registered) || registered.idleTimer !== undefined) return;
    const leftMs = registered.askedAtMs + idlePauseMs - performance.now();
    registered.idleTimer = setTimeout(
      () => {
        registered.idleTimer = undefined;
        if (!isIdle(registered)) this.rest(registered);
        else this.#doze(registered).catch((error: unknown) => this.#couldNot(registered, error));
      },
      Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS),
    );
    registered.idleTimer.unref();
  }

  #doze(registered: RegisteredSandbox): Promise<void> {
    return registered.turns.run(async () => {
      if (isIdle(registered)) await this.#become("doze", SERVER, registered);
      else this.rest(registered);
    });
  }

  #take(step: Step, caller: Caller, registered: RegisteredSandbox): Promise<SandboxRecord> {
    return registered.turns.run(() => this.#become(step, caller, registered));
  }

  async #become(step: Step, caller: Caller, registered: RegisteredSandbox): Promise<SandboxRecord> {
    const { sandbox } = registered.requireRunning();
    const hold = (state: State): Promise<void> => (isHeld(state) ? sandbox.pause() : sandbox.resume());
    const before = registered.state;
    const state = await registered.step(step, { work: hold, undo: hold });
    if (state === before) return registered.record;
    const data = isHeld(state) ? { data: { idle: state === "IDLE" } } : {};
    this.#parts.auditTrail.tell(isHeld(state) ? "sandbox_paused" : "sandbox_resumed", registered, caller, data);
    registered.asked();
    this.rest(registered);
    return registered.record;
  }

  #couldNot(registered: RegisteredSandbox, error: unknown): void {
    if (registered.departure !== undefined || registered.running === undefined) return;
    this.#parts.log({ level: "warn", message: "an idle sandbox could not be paused", sandboxId: registered.id, error });
    registered.asked();
    this.rest(registered);
  }
}

function isAtRest({ state, running, calls }: RegisteredSandbox): boolean {
  return running !== undefined && state === "RUNNING" && calls === 0;
}

function isIdle(registered: RegisteredSandbox): boolean {
  return isAtRest(registered) && performance.now() >= registered.askedAtMs + registered.record.idlePauseMs;
}
