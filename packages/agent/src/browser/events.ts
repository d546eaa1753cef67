import type { ConfirmationAnswer, ConfirmationRequest } from "../confirmation/confirmation.ts";
import type { RiskAssessment } from "../types.ts";
import type { BrowserResult, BrowserRoute } from "./result.ts";

/** What happens in a BrowserRouter. */
export type BrowserEvent = { readonly sessionId: string; readonly at: Date } & BrowserHappening;

export type BrowserHappening =
  | {
      readonly type: "assessed";
      readonly action: string;
      readonly route: BrowserRoute;
      readonly risk: RiskAssessment;
    }
  | { readonly type: "confirmation_requested"; readonly request: ConfirmationRequest }
  | { readonly type: "confirmation_answered"; readonly answer: ConfirmationAnswer; readonly approved: boolean }
  | { readonly type: "browser_opened"; readonly route: BrowserRoute }
  | { readonly type: "browser_closed"; readonly route: BrowserRoute }
  | { readonly type: "request_blocked"; readonly url: string; readonly reason: string }
  | { readonly type: "finished"; readonly result: BrowserResult };
