import { createHash } from "node:crypto";
import { extname } from "node:path";
import { askUntilExpiry } from "../confirmation/ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "../confirmation/confirmation.ts";
import { isApproval } from "../confirmation/hash.ts";
import {
  type DetectedPattern,
  type Language,
  RISK_LEVELS,
  type RiskAssessment,
  type RiskLevel,
  type SecurityMode,
} from "../types.ts";
import type { ExecutionStep } from "./events.ts";
import type { AcceptedRequest } from "./request.ts";

const MOST_SHOWN_REASONS = 5;
/** Longer values are shown by their size and hash. */
const MOST_SHOWN_CHARACTERS = 200;

export type Verdict = Omit<Extract<ExecutionStep, { readonly type: "confirmation_answered" }>, "type">;

/** What somebody is shown: the code as it is, and in words all else that decides what it does. */
export function confirmationRequest(
  request: AcceptedRequest,
  circumstances: {
    readonly sessionId: string;
    readonly risk: RiskAssessment;
    readonly securityMode: SecurityMode;
    readonly expiresAt: Date;
  },
): ConfirmationRequest {
  const { sessionId, risk, securityMode, expiresAt } = circumstances;
  const reasons = [...new Set(risk.detected.map(({ reason }) => reason))].slice(0, MOST_SHOWN_REASONS);
  const lines = [
    `${request.language} code is rated ${risk.level}, and ${securityMode} mode asks before that is run`,
    ...reasons.map((reason) => `- ${plain(reason)}`),
    `It may take ${request.timeoutMs} ms.`,
    ...Object.entries(request.files).map(([path, content]) => `File ${quoted(path)}: ${digest(content)}`),
    ...Object.entries(request.env).map(([name, value]) => `Variable ${name}: ${shownValue(value)}`),
  ];
  return { sessionId, action: "run_code", code: request.code, risk, reason: lines.join("\n"), expiresAt };
}

/** Asks. Whatever is not an approval of exactly this request, in time, is a no; only aborting throws. */
export async function askFor(
  service: ConfirmationService,
  request: ConfirmationRequest,
  signal: AbortSignal,
): Promise<Verdict> {
  try {
    let given: ConfirmationAnswer | undefined;
    const { decision } = await askUntilExpiry(request, { signal }, async (waiting) => {
      given = await service.request(request, { signal: waiting });
      return given;
    });
    if (decision !== "approved" || given === undefined) {
      return { decision: decision === "timed_out" ? decision : "denied", ...signature(given) };
    }
    if (isApproval(given, request)) return { decision, ...signature(given) };
    return { decision: "denied", ...signature(given), problem: "the approval is not for what was asked" };
  } catch (error) {
    signal.throwIfAborted();
    const problem = error instanceof Error ? error.message : String(error);
    return { decision: "denied", problem: `the confirmation service failed: ${problem}` };
  }
}

function signature(answer: ConfirmationAnswer | undefined): Pick<Verdict, "reviewer" | "comment"> {
  return { reviewer: answer?.reviewer, comment: answer?.comment };
}

function digest(content: string | Uint8Array): string {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return `${Buffer.byteLength(content)} bytes, SHA-256 ${sha256}`;
}

function shownValue(value: string): string {
  return value.length <= MOST_SHOWN_CHARACTERS ? quoted(value) : digest(value);
}

function quoted(text: string): string {
  return plain(JSON.stringify(text));
}

/** On one line, and without characters that show nothing or turn the rest around. */
function plain(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

export type Assess = (code: string, language: Language) => Promise<RiskAssessment>;

const LANGUAGE_OF: Readonly<Record<string, Language>> = {
  ".py": "python",
  ".js": "javascript",
  ".mjs": "javascript",
  ".cjs": "javascript",
  ".ts": "typescript",
  ".sh": "bash",
  ".bash": "bash",
};

/** Longer programs in files are not looked into; that is a reason for some worry by itself. */
const MOST_ASSESSED_CHARACTERS = 256 * 1024;
const MOST_DETECTED = 200;

/**
 * What is thought of a request as a whole. Files and variables can change what harmless code does, so that with them
 * nothing is SAFE.
 */
export async function assessRequest(assess: Assess, request: AcceptedRequest): Promise<RiskAssessment> {
  const parts = [await assessPart(assess, request.code, request.language)];
  for (const [path, content] of Object.entries(request.files)) parts.push(await assessFile(assess, path, content));
  if (Object.keys(request.env).length > 0) parts.push(finding("LOW", "request.env", "it is given variables"));
  return {
    level: parts.map(({ level }) => level).reduce(higher),
    detected: parts.flatMap(({ detected }) => detected).slice(0, MOST_DETECTED),
  };
}

async function assessFile(assess: Assess, path: string, content: string | Uint8Array): Promise<RiskAssessment> {
  const name = JSON.stringify(path);
  const present = finding("LOW", "request.file", `it is given the file ${name}`);
  const language = LANGUAGE_OF[extname(path).toLowerCase()];
  if (language === undefined) return present;
  if (content.length > MOST_ASSESSED_CHARACTERS) {
    return finding("MEDIUM", "request.file", `it is given the file ${name}, which is too long to be looked into`);
  }
  const { level, detected } = await assessPart(assess, textOf(content), language);
  const inside = detected.map((found) => ({ ...found, reason: `${found.reason} (in the file ${name})` }));
  return { level: higher(level, "LOW"), detected: [...present.detected, ...inside] };
}

/** Where nothing can be said, the worst is assumed. */
async function assessPart(assess: Assess, code: string, language: Language): Promise<RiskAssessment> {
  try {
    return await assess(code, language);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return finding("CRITICAL", "assessment.failed", `it could not be assessed: ${problem}`);
  }
}

export function finding(level: RiskLevel, pattern: string, reason: string): RiskAssessment {
  const detected: DetectedPattern = { pattern, reason, line: 1 };
  return { level, detected: [detected] };
}

function higher(one: RiskLevel, other: RiskLevel): RiskLevel {
  return RISK_LEVELS.indexOf(one) >= RISK_LEVELS.indexOf(other) ? one : other;
}

function textOf(content: string | Uint8Array): string {
  return typeof content === "string" ? content : Buffer.from(content).toString("utf8");
}
