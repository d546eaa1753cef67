import { UnifiedRiskPolicy } from "../risk/policy.ts";
import type { RiskAssessment, RiskLevel } from "../types.ts";
import type { BrowserActionName, CheckedAction } from "./action.ts";

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
