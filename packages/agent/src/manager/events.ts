import type { ConfirmationDecision, ConfirmationRequest } from "../confirmation/confirmation.ts";
import type { ExecutionResult, FailureCode, Language, RiskAssessment, SandboxType } from "../types.ts";

interface EventFacts {
  /** The same for all steps of one execution. */
  readonly executionId: string;
  readonly sessionId: string;
  readonly at: Date;
}

/** A step of an execution. The last one is `finished` or `failed`. */
export type ExecutionStep =
  | { readonly type: "assessed"; readonly language: Language; readonly risk: RiskAssessment }
  | { readonly type: "confirmation_requested"; readonly request: ConfirmationRequest }
  | {
      readonly type: "confirmation_answered";
      readonly decision: ConfirmationDecision;
      readonly reviewer?: string | undefined;
      readonly comment?: string | undefined;
      /** Why it counts as denied, where it is not the answer that says so. */
      readonly problem?: string | undefined;
    }
  | {
      readonly type: "sandbox_chosen";
      readonly sandboxType: SandboxType;
      /** What the table asks for. */
      readonly wanted: SandboxType;
    }
  /** It was not run there; another one is tried if there is one. */
  | { readonly type: "sandbox_unavailable"; readonly sandboxType: SandboxType | undefined; readonly error: unknown }
  | { readonly type: "started"; readonly sandboxType: SandboxType }
  /** It was run, with whatever success. */
  | { readonly type: "finished"; readonly result: ExecutionResult }
  | {
      readonly type: "failed";
      readonly errorCode: FailureCode | "ABORTED";
      readonly message: string;
      /** What was thrown, if that is why. */
      readonly error?: unknown;
    };

export type ManagerEvent = EventFacts & ExecutionStep;

export type ManagerListener = (event: ManagerEvent) => void;
