import type { ConfirmationRequest } from "../confirmation.ts";
import { requestHash } from "../hash.ts";
import { visibleRows } from "./visible.ts";

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
