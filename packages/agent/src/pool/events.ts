/** What happened in a pool. */
export type PoolEvent =
  | { readonly type: "created"; readonly tookMs: number }
  | { readonly type: "destroyed"; readonly why: DestructionReason }
  | { readonly type: "acquired"; readonly sessionId: string; readonly waitedMs: number }
  | { readonly type: "released"; readonly sessionId: string; readonly broken: boolean }
  | { readonly type: "timed_out"; readonly sessionId: string }
  | { readonly type: "failed"; readonly step: PoolStep; readonly error: unknown };

export type PoolStep = "create" | "reset" | "check" | "destroy";

/** "used": by a session, and there is no way to reset it. */
export type DestructionReason = "used" | "broken" | "idle" | "stopped";

/** Tells a listener. That it throws is its own affair: it is warned of, and disturbs nothing. */
export function tellListener<E>(listener: ((event: E) => void) | undefined, event: E): void {
  try {
    listener?.(event);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    process.emitWarning(`a listener threw: ${problem}`, { type: "AgentFenseWarning", code: "AGENTFENSE_LISTENER" });
  }
}
