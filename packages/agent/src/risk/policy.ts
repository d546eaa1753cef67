import type { Language, RiskAssessment, RiskLevel, SandboxType, SecurityMode } from "../types.ts";
import { assessHere } from "./assessment.ts";
import { maxRisk } from "./findings.ts";
import { RISK_TABLE } from "./table.ts";
import { assessAside } from "./thread.ts";

/** Longer code is assessed on another thread: text made for it takes seconds. */
const SHORT_CHARACTERS = 4096;

/**
 * Tells how much of what code could do is to be worried about, from its syntax tree, and what follows from that.
 * A hint, and no boundary: whatever is said here, code runs in a box. It decides who is asked.
 */
export const UnifiedRiskPolicy = {
  /** Never fails for what the code is. */
  async assess(code: string, language: Language): Promise<RiskAssessment> {
    return code.length <= SHORT_CHARACTERS ? await assessHere(code, language) : await assessAside(code, language);
  },

  /** Where code of this risk is to be run. */
  getRequiredSandbox(risk: RiskAssessment | RiskLevel, mode: SecurityMode): SandboxType {
    return RISK_TABLE[mode][levelOf(risk)].sandbox;
  },

  /** Whether a person is to be asked first. */
  needsConfirmation(risk: RiskAssessment | RiskLevel, mode: SecurityMode): boolean {
    return RISK_TABLE[mode][levelOf(risk)].confirm;
  },

  /** The highest of several; SAFE of none. */
  maxRisk(levels: Iterable<RiskLevel>): RiskLevel {
    return maxRisk(levels);
  },
} as const;

function levelOf(risk: RiskAssessment | RiskLevel): RiskLevel {
  return typeof risk === "string" ? risk : risk.level;
}
