import { type DetectedPattern, type Language, RISK_LEVELS, type RiskAssessment } from "../types.ts";
import { assessBash } from "./bash/assess.ts";
import { type Finding, Findings, maxRisk, type NestedCode, type Rule, rule } from "./findings.ts";
import { assessJavaScript } from "./javascript/assess.ts";
import { assessPython } from "./python/assess.ts";
import { checkSafe } from "./safe.ts";
import { parserOf } from "./syntax/grammars.ts";
import type { SyntaxNode } from "./syntax/node.ts";
import { PARSE_LIMITS, parse } from "./syntax/parse.ts";

type Assessed = NestedCode["language"];

const ASSESSORS: Readonly<Record<Assessed, (root: SyntaxNode, findings: Findings) => void>> = {
  python: assessPython,
  javascript: assessJavaScript,
  typescript: assessJavaScript,
  bash: assessBash,
};

const MAX_DETECTED = 100;

/** How deep code in code is followed, and how much of it altogether. */
const NESTING = { depth: 4, pieces: 64, length: PARSE_LIMITS.codeLength } as const;

const TOO_LARGE = rule("HIGH", "too-large", "is too large to be looked at");
const TOO_COMPLICATED = rule("HIGH", "too-complicated", "is too complicated to be looked at");
const TOO_NESTED = rule("HIGH", "too-nested", "holds more code in code than is looked at");
const UNPARSABLE = rule("MEDIUM", "unparsable", "cannot be parsed here");

/** Assesses code on this thread; how long that takes is bounded, and long for text that is made for it. */
export async function assessHere(code: string, language: Language): Promise<RiskAssessment> {
  const found: Finding[] = [];
  const first: NestedCode = { code, language: language === "command" ? "bash" : language, line: 1 };
  const waiting: { readonly piece: NestedCode; readonly depth: number }[] = [{ piece: first, depth: 0 }];
  let pieces = 0;
  let length = 0;
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { piece, depth } = next;
    const isOuter = depth === 0;
    length += piece.code.length;
    const isBeyond = depth > NESTING.depth || ++pieces > NESTING.pieces || (!isOuter && length > 2 * NESTING.length);
    const findings = isBeyond ? onlyFinding(piece.language, TOO_NESTED) : await assessPiece(piece.code, piece.language);
    found.push(...findings.list().map((finding) => (isOuter ? finding : { ...finding, line: piece.line })));
    if (isBeyond) break;
    for (const inner of findings.nested) {
      waiting.push({ piece: isOuter ? inner : { ...inner, line: piece.line }, depth: depth + 1 });
    }
  }
  return { level: maxRisk(found.map((finding) => finding.level)), detected: detected(found) };
}

async function assessPiece(code: string, language: Assessed): Promise<Findings> {
  const findings = new Findings(language);
  if (code.length > PARSE_LIMITS.codeLength) return onlyFinding(language, TOO_LARGE);
  const text = asRead(code, language);
  for (const strange of strangeText(text, language)) findings.add(strange.rule, strange.line);
  try {
    const parser = await parserOf(language);
    const root = parse(parser, text);
    if (root === undefined) {
      findings.add(TOO_COMPLICATED, 1);
      return findings;
    }
    const broken = root.all().find((node) => node.isError);
    if (broken !== undefined) findings.add(UNPARSABLE, broken.line);
    ASSESSORS[language](root, findings);
    checkSafe(root, language, findings);
  } catch (error) {
    // Not knowing is not SAFE. What went wrong belongs to what a person sees.
    const problem = error instanceof Error ? error.message : error;
    findings.add(rule("HIGH", "not-assessed", `could not be assessed: ${problem}`), 1);
  }
  return findings;
}

function onlyFinding(language: Assessed, rule: Rule): Findings {
  const findings = new Findings(language);
  findings.add(rule, 1);
  return findings;
}

/** The most serious first where there are too many, then in the order of the lines. */
function detected(found: readonly Finding[]): readonly DetectedPattern[] {
  const seriousness = (finding: Finding): number => RISK_LEVELS.indexOf(finding.level);
  const isUnlisted = ({ pattern }: Finding): boolean => pattern.endsWith(".unlisted");
  // That something is not on a list of harmless things says nothing where a rule says what it is.
  const explained = new Set(found.filter((finding) => !isUnlisted(finding)).map((finding) => finding.line));
  const telling = found.filter((finding) => !isUnlisted(finding) || !explained.has(finding.line));
  const kept = telling.toSorted((a, b) => seriousness(b) - seriousness(a)).slice(0, MAX_DETECTED);
  return kept
    .toSorted((a, b) => a.line - b.line || seriousness(b) - seriousness(a))
    .map(({ pattern, reason, line }) => ({ pattern, reason, line }));
}

/** Text as the interpreters read it: without a byte order mark; for python and javascript with "\n" as line end. */
function asRead(code: string, language: string): string {
  const text = code.startsWith("\uFEFF") ? code.slice(1) : code;
  // A lone carriage return ends a line, and with it a comment, in python and javascript; in bash it is a character.
  return language === "bash" ? text : text.replace(/\r\n?/g, "\n");
}

const CONTROL = rule("MEDIUM", "control-character", "contains control characters, which parsers take differently");
const INVISIBLE = rule("MEDIUM", "invisible-text", "contains invisible characters, or such that turn its direction");
const ENCODING = /^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)/;

/** What is strange about a text before it is parsed: things that a reader and an interpreter see differently. */
function* strangeText(text: string, language: string): Generator<{ readonly rule: Rule; readonly line: number }> {
  if (!text.isWellFormed()) yield { rule: rule("MEDIUM", "control-character", "is not well-formed Unicode"), line: 1 };
  for (const [index, content] of text.split("\n").entries()) {
    const line = index + 1;
    if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f\r]/.test(content)) yield { rule: CONTROL, line };
    if (/[\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]/.test(content))
      yield { rule: INVISIBLE, line };
    const encoding = language === "python" && index < 2 ? ENCODING.exec(content)?.[1] : undefined;
    if (encoding !== undefined && !/^(?:utf-?8|us-ascii|ascii)$/i.test(encoding.replaceAll("_", "-")))
      yield {
        rule: rule("HIGH", "encoding", `is to be read as ${encoding}, so that it is not what it looks like`),
        line,
      };
  }
}
