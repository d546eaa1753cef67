import type { ConfirmationAnswer, ConfirmationRequest } from "../confirmation/confirmation.ts";
import type { BrowserError } from "../errors.ts";
import type { RiskAssessment } from "../types.ts";
import type { BrowserTab } from "./page/tabs.ts";

/** Where a browser runs: in a sandbox, or on this machine. */
export type BrowserRoute = "sandbox" | "external";

/** What an action is for; either of the two leads into the sandbox. */
export interface BrowserContext {
  /** Files of the workspace are to be opened. */
  readonly needsFileAccess?: boolean | undefined;
  /** Pages that nobody knows are to be visited. */
  readonly isResearch?: boolean | undefined;
}

export interface BrowserResult {
  readonly success: boolean;
  readonly action: string;
  readonly route: BrowserRoute;
  /** The address of the current tab after the action. */
  readonly url?: string | undefined;
  readonly title?: string | undefined;
  /** The answer to text, markdown and html: at most 256 Ki characters. */
  readonly text?: string | undefined;
  /** The value of `evaluate`, the status of `navigate`, the path of what was saved. */
  readonly data?: unknown;
  /** PNG unless the action says otherwise. */
  readonly screenshot?: Uint8Array | undefined;
  /** After `tabs`, and whenever there is more than one. */
  readonly tabs?: readonly BrowserTab[] | undefined;
  /** Requests that the URL rules or the proxy did not let through meanwhile; the first few. */
  readonly blocked?: readonly { readonly url: string; readonly reason: string }[] | undefined;
  readonly risk: RiskAssessment;
  /** For people; there unless `success`. */
  readonly error?: string | undefined;
  readonly errorCode?: BrowserError["code"] | undefined;
  readonly durationMs: number;
}

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
