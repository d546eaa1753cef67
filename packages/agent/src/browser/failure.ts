import { BrowserError, PathTraversalError } from "../errors.ts";
import type { BlockedRequest } from "./guard.ts";
import type { BrowserResult } from "./result.ts";

const MAX_CHARACTERS = 2_000;

/** What went wrong, for people and for programs. */
export function failureOf(
  error: unknown,
  blocked: readonly BlockedRequest[],
): Required<Pick<BrowserResult, "error" | "errorCode">> {
  const message = plainText(error instanceof Error ? error.message : String(error));
  const refused = message.includes("net::ERR_") ? blocked.find(({ isDocument }) => isDocument) : undefined;
  if (refused !== undefined) return { error: `${refused.url}: ${refused.reason}`, errorCode: "URL_NOT_ALLOWED" };
  if (error instanceof PathTraversalError) return { error: message, errorCode: "INVALID_ACTION" };
  if (!(error instanceof BrowserError)) return { error: message, errorCode: "ACTION_FAILED" };
  const hint = error.hint === undefined ? "" : ` (${error.hint})`;
  return { error: `${message}${hint}`, errorCode: error.code };
}

/** Playwright writes for terminals, and what pages say is in it. */
function plainText(message: string): string {
  return message.replace(/\x1b\[[\d;]*m/g, "").slice(0, MAX_CHARACTERS);
}
