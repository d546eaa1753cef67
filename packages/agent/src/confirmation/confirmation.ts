import type { RiskAssessment } from "../types.ts";

/** What somebody is asked to agree to. */
export interface ConfirmationRequest {
  readonly sessionId: string;
  /** "run_code", "browser.navigate" … */
  readonly action: string;
  /** Exactly what will be done: the code, the command line, the action as JSON. */
  readonly code: string;
  readonly risk: RiskAssessment;
  /** For people: why they are asked. */
  readonly reason: string;
  /** Nobody answered by then: denied. */
  readonly expiresAt: Date;
}

export type ConfirmationDecision = "approved" | "denied" | "timed_out";

export interface ConfirmationAnswer {
  /** Anything but "approved" means that it must not be done. */
  readonly decision: ConfirmationDecision;
  /** The `requestHash` of exactly what was shown to whoever answered. */
  readonly hash: string;
  /** Who answered, where that is known. */
  readonly reviewer?: string | undefined;
  readonly comment?: string | undefined;
}

/** Asks somebody. Whoever uses the answer compares its hash with that of what he is about to do (`isApproval`). */
export interface ConfirmationService {
  request(
    request: ConfirmationRequest,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ConfirmationAnswer>;
}
