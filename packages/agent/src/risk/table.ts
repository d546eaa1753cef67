import type { RiskLevel, SandboxType, SecurityMode } from "../types.ts";

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
