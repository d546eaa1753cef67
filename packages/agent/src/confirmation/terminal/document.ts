import type { ConfirmationRequest } from "../confirmation.ts";
import { requestHash } from "../hash.ts";

/**
 * All that is asked, row by row. Text from elsewhere never starts a row: it stands behind a margin that only this page has,
 * so that it cannot pass for a question.
 */
export function requestDocument(request: ConfirmationRequest, columns: number): string[] {
  const { sessionId, action, code, risk, reason, expiresAt } = request;
  return [
    "=== approval needed ===",
    ...field("action", action, columns),
    ...field("session", sessionId, columns),
    ...field("risk", risk.level, columns),
    ...risk.detected.flatMap((seen) => field("", `line ${seen.line}: ${seen.pattern}: ${seen.reason}`, columns)),
    ...field("reason", reason, columns),
    ...field("expires", expiresAt.toISOString(), columns),
    ...field("hash", requestHash(request), columns),
    `--- ${code.split("\n").length} lines, ${code.length} characters ---`,
    ...numberedLines(code, columns),
    "--- end ---",
  ];
}

function field(name: string, value: string, columns: number): string[] {
  const rows = visibleRows(value, columns - 12).flat();
  return rows.map((row, index) => `  ${(index === 0 ? name : "").padEnd(8)}  ${row}`);
}

function numberedLines(code: string, columns: number): string[] {
  return visibleRows(code, columns - 9).flatMap((rows, line) =>
    rows.map((row, index) => `${(index === 0 ? String(line + 1) : "").padStart(6)} ${index === 0 ? "|" : ":"} ${row}`),
  );
}

// Whoever wrote the code must not decide how it looks. A terminal obeys escape sequences, a carriage return paints over what
// was there, some characters reorder their line, others have no shape at all. All of these are shown by their number.

/** Controls, what is not assigned, spaces other than " ", and characters that are to be ignored when there is no glyph. */
const WITHOUT_SHAPE = /[\p{C}\p{Z}\p{DI}\p{Me}\u2800]/u;
/** Hebrew, Arabic and their neighbours: their letters turn the order of what stands between them. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
/** One or two accents are writing; a heap of them covers the lines above. */
const MARKS = /(?<=\p{M}\p{M})\p{M}/gu;

const UNSAFE = new RegExp(`(?! )(?:${WITHOUT_SHAPE.source}|${RIGHT_TO_LEFT.source})`, "gu");

/** The text on one line, as a terminal shows it without being commanded by it. */
export function visible(text: string): string {
  return text.replaceAll(MARKS, byNumber).replaceAll("\t", "→   ").replaceAll(UNSAFE, byNumber);
}

function byNumber(character: string): string {
  return `<U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** Each line of the text, cut into rows of at most `columns`: a terminal that wraps by itself would start a row anew. */
function visibleRows(text: string, columns: number): string[][] {
  return text.split("\n").map((line) => wrap(visible(line), columns));
}

function wrap(line: string, columns: number): string[] {
  const rows: string[] = [];
  let [row, used] = ["", 0];
  for (const character of line) {
    const width = columnsOf(character);
    if (used + width > columns) {
      rows.push(row);
      [row, used] = ["", 0];
    }
    row += character;
    used += width;
  }
  return [...rows, row];
}

/** At least as many as any terminal takes: from there on there are scripts of double width. */
function columnsOf(character: string): number {
  return character.codePointAt(0)! < 0x1100 ? 1 : 2;
}
