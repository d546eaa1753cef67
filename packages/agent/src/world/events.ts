import type { ConfirmationDecision } from "../confirmation/confirmation.ts";
import type { RiskLevel } from "../types.ts";

interface WorldEventFacts {
  /** The same for all events of one call. */
  readonly callId: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly at: Date;
}

/** A step of a call. What the manager and the router do meanwhile, they tell themselves. */
export type WorldEvent = WorldEventFacts &
  (
    | {
        readonly type: "called";
        /** The input as JSON, shortened. */
        readonly input: string;
      }
    | { readonly type: "confirmation_requested"; readonly level: RiskLevel }
    | { readonly type: "confirmation_answered"; readonly decision: ConfirmationDecision }
    | { readonly type: "finished"; readonly isError: boolean; readonly durationMs: number }
    /** It was given up, or failed for a reason that is not told to the model. */
    | { readonly type: "failed"; readonly error: unknown; readonly durationMs: number }
  );

export type WorldListener = (event: WorldEvent) => void;
