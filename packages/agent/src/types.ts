import type { RiskLevel } from "@agentfense/sdk/tool-kit";

export type { RiskLevel };

/** In rising order. */
export const RISK_LEVELS: readonly RiskLevel[] = ["SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"];

/** Something that was seen in the code. */
export interface DetectedPattern {
  /** Which one: "python.subprocess". */
  readonly pattern: string;
  readonly reason: string;
  /** Counted from 1. */
  readonly line: number;
}

export interface RiskAssessment {
  readonly level: RiskLevel;
  readonly detected: readonly DetectedPattern[];
}

/** Everything that is not SAFE runs in a sandbox in both; in STRICT, what is HIGH in a container where there is one. */
export type SecurityMode = "PERMISSIVE" | "STRICT";

/** Which kind of executor. A "subprocess" has a box too, but no rules, quota and control group. */
export type SandboxType = "subprocess" | "fense" | "docker" | "aio";

/** "command" is any command line. */
export type Language = "python" | "javascript" | "typescript" | "bash" | "command";

export const LANGUAGES: readonly Language[] = ["python", "javascript", "typescript", "bash", "command"];

export interface ExecutionRequest {
  readonly code: string;
  readonly language: Language;
  /** Default 30 s. */
  readonly timeoutMs?: number | undefined;
  /** Written into the workspace before the code runs: path → content. */
  readonly files?: Readonly<Record<string, string | Uint8Array>> | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** In an interpreter that keeps the names of the code before that asked for this, too. Only a sandbox that stays has one. */
  readonly keepsState?: boolean | undefined;
}

/** Why nothing was run, or why what was run counts as failed. */
export type FailureCode =
  /** The code ended with another exit code than 0. */
  | "EXIT_CODE"
  | "TIMEOUT"
  | "OUT_OF_MEMORY"
  /** A person, or the lack of one, said no. */
  | "DENIED"
  /** No executor may or can run this. */
  | "REFUSED"
  /** The executor, or what it needs, is not to be had. */
  | "UNAVAILABLE"
  | "INVALID_REQUEST"
  | "INTERNAL";

/** A piece of rich output, as notebooks have it. */
export interface RichOutput {
  /** MIME type → content. */
  readonly data: Readonly<Record<string, string>>;
}

/** What an executor did. */
export interface ExecutionOutcome {
  readonly stdout: string;
  readonly stderr: string;
  /** 128 + n after signal n; -1 when it is not known. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  /** Some output was beyond the limit and is lost. */
  readonly truncated: boolean;
  readonly durationMs: number;
  readonly results?: readonly RichOutput[] | undefined;
}

export interface ExecutionResult extends ExecutionOutcome {
  /** It ran and ended with 0. */
  readonly success: boolean;
  /** Absent when nothing was run. */
  readonly sandboxType: SandboxType | undefined;
  readonly risk: RiskAssessment;
  /** For people; there unless `success`. */
  readonly error?: string | undefined;
  readonly errorCode?: FailureCode | undefined;
}
