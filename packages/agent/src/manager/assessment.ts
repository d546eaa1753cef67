import { extname } from "node:path";
import { type DetectedPattern, type Language, RISK_LEVELS, type RiskAssessment, type RiskLevel } from "../types.ts";
import type { AcceptedRequest } from "./request.ts";

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
