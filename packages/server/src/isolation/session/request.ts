import { SandboxError } from "../backend/errors.ts";
import { effectiveTimeout, type TimeLimits } from "../exec/request.ts";
import type { SessionExecRequest } from "./api.ts";

/** Bounds of a session's commands. */
export interface SessionDefaults {
  readonly timeLimits: TimeLimits;
  /** Kept of each stream of a command. */
  readonly outputBytes: number;
}

/** bash reads its commands byte by byte, about 3 MB a second; nobody types so much. */
const LONGEST_COMMAND_BYTES = 16 * 1024 * 1024;

/** A command that can be run. */
export interface CheckedRequest {
  readonly text: Buffer;
  /** Absent: no limit. */
  readonly timeoutMs: number | undefined;
}

export function checkRequest(request: SessionExecRequest, defaults: SessionDefaults): CheckedRequest {
  const { command, timeoutMs } = request;
  if (typeof command !== "string") throw invalid("the command must be a text");
  const text = Buffer.from(command);
  if (text.includes(0)) throw invalid("the command has a NUL byte in it");
  if (text.length > LONGEST_COMMAND_BYTES) throw invalid(`the command is longer than ${LONGEST_COMMAND_BYTES} bytes`);
  return { text, timeoutMs: effectiveTimeout(timeoutMs, defaults.timeLimits) };
}

/** A timer cannot run longer. */
const LONGEST_MS = 2 ** 31 - 1;

export function checkDuration(name: string, ms: number): number {
  if (typeof ms !== "number" || !(ms > 0)) throw invalid(`${name} must be a number above 0`);
  return Math.min(ms, LONGEST_MS);
}

function invalid(message: string): SandboxError {
  return new SandboxError("INVALID_ARGUMENT", message);
}
