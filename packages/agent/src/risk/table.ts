import type { Language, RiskAssessment, RiskLevel, SandboxType, SecurityMode } from "../types.ts";
import { assessHere } from "./assessment.ts";
import { maxRisk } from "./findings.ts";
import { assessAside } from "./thread.ts";

/** What becomes of code of one level. */
export interface RiskDecision {
  /** "docker" is a wish: another sandbox may stand in for it, never "subprocess". */
  readonly sandbox: SandboxType;
  /** A person is asked first. */
  readonly confirm: boolean;
}

/** Mode → level → what is done. */
export const RISK_TABLE: Readonly<Record<SecurityMode, Readonly<Record<RiskLevel, RiskDecision>>>> = {
  PERMISSIVE: {
    SAFE: { sandbox: "subprocess", confirm: false },
    LOW: { sandbox: "fense", confirm: false },
    MEDIUM: { sandbox: "fense", confirm: false },
    HIGH: { sandbox: "fense", confirm: true },
    CRITICAL: { sandbox: "docker", confirm: true },
  },
  STRICT: {
    SAFE: { sandbox: "subprocess", confirm: false },
    LOW: { sandbox: "fense", confirm: false },
    MEDIUM: { sandbox: "fense", confirm: false },
    HIGH: { sandbox: "docker", confirm: true },
    CRITICAL: { sandbox: "docker", confirm: true },
  },
};

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
