import { RuntimeError } from "../runtime-error.ts";
import type { SandboxRecord, SandboxRecordStatus } from "../store/store.ts";
import { sandboxNotRunning, sandboxPaused } from "./refusals.ts";

// The states of a sandbox, and all that leads from one to another. The record in the store has the state; below it there is a box
// that runs, or none. What is destroyed has no record, and no state.

/** IDLE is a pause that nobody asked for: the next call that needs a process ends it. Stored as PAUSED, for the reason `idle`. */
export type State = SandboxRecordStatus | "IDLE";

export type Step =
  | "start"
  | "stop"
  | "pause"
  | "resume"
  /** Pauses it because nothing is asked of it. */
  | "doze"
  /** For a call that needs a process. */
  | "wake"
  /** For a call that needs the box, and for a server that takes over what another left. */
  | "use"
  | "fail";

type Refusal = "SANDBOX_NOT_RUNNING" | "SANDBOX_ALREADY_RUNNING" | "SANDBOX_PAUSED" | "SANDBOX_FAILED";

const NOT_RUNNING = {
  PENDING: "SANDBOX_NOT_RUNNING",
  STOPPED: "SANDBOX_NOT_RUNNING",
  ERROR: "SANDBOX_FAILED",
} as const;
const BEGUN = {
  RUNNING: "SANDBOX_ALREADY_RUNNING",
  IDLE: "SANDBOX_ALREADY_RUNNING",
  PAUSED: "SANDBOX_PAUSED",
} as const;

/** The state after each step, or why there is no such step. */
export const TRANSITIONS: Readonly<Record<Step, Readonly<Record<State, State | Refusal>>>> = {
  start: { PENDING: "RUNNING", STOPPED: "RUNNING", ...BEGUN, ERROR: "SANDBOX_FAILED" },
  stop: { ...NOT_RUNNING, RUNNING: "STOPPED", PAUSED: "STOPPED", IDLE: "STOPPED" },
  pause: { ...NOT_RUNNING, RUNNING: "PAUSED", PAUSED: "PAUSED", IDLE: "PAUSED" },
  resume: { ...NOT_RUNNING, RUNNING: "RUNNING", PAUSED: "RUNNING", IDLE: "RUNNING" },
  doze: { ...NOT_RUNNING, RUNNING: "IDLE", PAUSED: "PAUSED", IDLE: "IDLE" },
  wake: { ...NOT_RUNNING, RUNNING: "RUNNING", PAUSED: "SANDBOX_PAUSED", IDLE: "RUNNING" },
  use: { ...NOT_RUNNING, RUNNING: "RUNNING", PAUSED: "PAUSED", IDLE: "IDLE" },
  fail: { PENDING: "ERROR", STOPPED: "ERROR", RUNNING: "ERROR", PAUSED: "ERROR", IDLE: "ERROR", ERROR: "ERROR" },
};

const IDLE_REASON = "idle";

export function stateOf({ status, statusReason }: Pick<SandboxRecord, "status" | "statusReason">): State {
  return status === "PAUSED" && statusReason === IDLE_REASON ? "IDLE" : status;
}

/** As the record has it; `reason` is that of an ERROR, or of a stop that nobody asked for. */
export function recorded(state: State, reason = ""): Pick<SandboxRecord, "status" | "statusReason"> {
  return state === "IDLE" ? { status: "PAUSED", statusReason: IDLE_REASON } : { status: state, statusReason: reason };
}

/** It has a box, or had one when the server ended. */
export function isLiving(state: State): boolean {
  return !Object.hasOwn(NOT_RUNNING, state);
}

/** Whether its processes are held still. */
export function isHeld(state: State): boolean {
  return state === "PAUSED" || state === "IDLE";
}

/** The state that a step leads to. Throws where there is no such step, without anything having been done. */
export function nextState(step: Step, record: Pick<SandboxRecord, "id" | "status" | "statusReason">): State {
  const next = TRANSITIONS[step][stateOf(record)];
  switch (next) {
    case "SANDBOX_NOT_RUNNING":
      throw sandboxNotRunning();
    case "SANDBOX_PAUSED":
      throw sandboxPaused();
    case "SANDBOX_ALREADY_RUNNING":
      throw new RuntimeError(next, "sandbox is already running");
    case "SANDBOX_FAILED":
      throw new RuntimeError(next, `sandbox is not running: ${record.statusReason}`, {
        details: { sandbox_id: record.id, status: "ERROR" },
        hint: "a sandbox that failed can only be destroyed",
      });
    default:
      return next;
  }
}
