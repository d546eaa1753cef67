import type { ConfirmationRequest, ConfirmationService } from "../confirmation/confirmation.ts";
import { isApproval } from "../confirmation/hash.ts";
import { BrowserError } from "../errors.ts";
import { UnifiedRiskPolicy } from "../risk/table.ts";
import type { RiskAssessment, RiskLevel, SecurityMode } from "../types.ts";
import { type BrowserActionName, type CheckedAction, canonicalJson } from "./action.ts";
import type { BrowserHappening, BrowserRoute } from "./result.ts";

/** Returns if the action may be done: the table does not ask for a person, or one agreed to exactly this. */
export async function obtainConsent(
  { action, params }: CheckedAction,
  options: {
    readonly sessionId: string;
    readonly route: BrowserRoute;
    readonly risk: RiskAssessment;
    readonly securityMode: SecurityMode;
    readonly confirmation: ConfirmationService | undefined;
    readonly timeoutMs: number;
    readonly tell: (happening: BrowserHappening) => void;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const { sessionId, route, risk, confirmation, tell, signal } = options;
  if (!UnifiedRiskPolicy.needsConfirmation(risk, options.securityMode)) return;
  if (confirmation === undefined) {
    const hint = "give the BrowserRouter a confirmation service";
    throw new BrowserError("DENIED", `${action} is ${risk.level}, and there is nobody to ask`, { hint });
  }
  const request: ConfirmationRequest = {
    sessionId,
    action: `browser.${action}`,
    code: canonicalJson({ action, params, route }),
    risk,
    reason: [`${action} is ${risk.level}`, ...risk.detected.slice(0, 5).map(({ reason }) => reason)].join("; "),
    expiresAt: new Date(Date.now() + options.timeoutMs),
  };
  tell({ type: "confirmation_requested", request });
  const answer = await confirmation.request(request, { signal }).catch((cause: unknown) => {
    signal?.throwIfAborted();
    throw new BrowserError("DENIED", `nobody could be asked: ${cause}`, { cause });
  });
  const approved = isApproval(answer, request);
  tell({ type: "confirmation_answered", answer, approved });
  if (approved) return;
  const because = answer.comment === undefined ? "" : `: ${answer.comment.slice(0, 500)}`;
  const decision = answer.decision === "approved" ? "approved was something else, or too late" : answer.decision;
  throw new BrowserError("DENIED", `${action} is ${risk.level} and was not approved: ${decision}${because}`);
}

/** What each action is at least. Looking is harmless; whatever a page can take for a person's wish is not. */
const LEVELS: Readonly<Record<BrowserActionName, RiskLevel>> = {
  navigate: "LOW",
  back: "LOW",
  forward: "LOW",
  reload: "LOW",
  click: "LOW",
  fill: "MEDIUM",
  press: "LOW",
  scroll: "SAFE",
  text: "SAFE",
  markdown: "SAFE",
  html: "SAFE",
  screenshot: "SAFE",
  evaluate: "MEDIUM",
  wait: "SAFE",
  tabs: "LOW",
  download: "MEDIUM",
};

/** How risky an action is: by the table, by where it goes, and by the code that it has. */
export async function assessAction(checked: CheckedAction): Promise<RiskAssessment> {
  const floor = { level: LEVELS[checked.action], detected: [] };
  switch (checked.action) {
    case "navigate":
      return isOfTheWeb(checked.params.url) ? floor : elsewhere(checked.params.url);
    case "evaluate": {
      const code = await UnifiedRiskPolicy.assess(checked.params.expression, "javascript");
      return { ...code, level: UnifiedRiskPolicy.maxRisk([code.level, floor.level]) };
    }
    default:
      return floor;
  }
}

function isOfTheWeb(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? "");
}

function elsewhere(url: string): RiskAssessment {
  const scheme = URL.parse(url)?.protocol ?? "unknown";
  return { level: "MEDIUM", detected: [{ pattern: "browser.scheme", reason: `an address with ${scheme}`, line: 1 }] };
}
