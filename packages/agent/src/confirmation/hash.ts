import { createHash, timingSafeEqual } from "node:crypto";
import type { ConfirmationAnswer, ConfirmationRequest } from "./confirmation.ts";

/**
 * What an approval binds to: SHA-256, in lower-case hexadecimal, of the UTF-8 bytes of this JSON text without spaces:
 *
 *   ["agentfense.confirmation.v1", sessionId, action, code, level, [[pattern, reason, line], …], reason, expiresAtMs]
 *
 * JSON, as `JSON.stringify` writes it, has one text for each value: quotes cannot be left early, and a half of a surrogate
 * pair is written as its number, where plain UTF-8 would make all of them the same character.
 */
export function requestHash(request: ConfirmationRequest): string {
  const shown = [
    "agentfense.confirmation.v1",
    request.sessionId,
    request.action,
    request.code,
    request.risk.level,
    request.risk.detected.map(({ pattern, reason, line }) => [pattern, reason, line]),
    request.reason,
    request.expiresAt.getTime(),
  ];
  return createHash("sha256").update(JSON.stringify(shown)).digest("hex");
}

/** Somebody agreed to exactly this request, and it is not too late. Everything else is a no. */
export function isApproval(
  answer: ConfirmationAnswer,
  request: ConfirmationRequest,
  now: () => number = Date.now,
): boolean {
  return (
    answer.decision === "approved" &&
    isSameHash(answer.hash, requestHash(request)) &&
    // With an invalid date nothing is before it.
    now() < request.expiresAt.getTime()
  );
}

export function isSameHash(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
