import { constants } from "node:os";
import type { Readable } from "node:stream";
import type { ProcessExit } from "../backend/backend.ts";

export type { Cancellable } from "../backend/backend.ts";

export interface ExecRequest {
  /** A line for the shell (`bash -c`, else `sh -c`), or a program and its arguments without a shell. */
  readonly command: string | readonly string[];
  readonly stdin?: string | Uint8Array | Readable | AsyncIterable<Uint8Array>;
  readonly env?: Readonly<Record<string, string>>;
  /** Inside the sandbox, absolute or relative to the workspace; default the workspace. */
  readonly workdir?: string;
  /** Default 30 s, at most 10 min (both configurable). */
  readonly timeoutMs?: number;
}

/** A command that ends with 1 is a result, and so is one that ran out of time: what it printed is kept. */
export interface ExecResult extends ExecOutcome {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

export interface ExecOutcome {
  /** 128 + n after signal n. */
  readonly exitCode: number;
  /** "SIGKILL" …, when the exit code speaks of one. */
  readonly signal?: string;
  readonly timedOut: boolean;
  /** Some output was beyond the limit and is lost (never in a stream). */
  readonly truncated: boolean;
  readonly outOfMemory: boolean;
  readonly durationMs: number;
}

export type ExecEvent =
  | { readonly kind: "stdout"; readonly data: Buffer }
  | { readonly kind: "stderr"; readonly data: Buffer }
  | { readonly kind: "exit"; readonly outcome: ExecOutcome };

/** A command used more than it may. */
export interface LimitEvent {
  readonly kind: "resource_limit_exceeded";
  readonly limit: "memory" | "time" | "output";
  readonly detail: string;
}

const NAMES = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** The signal that an exit code of 128 + n speaks of, by the convention of shells. */
function exitSignal(exitCode: number): string | undefined {
  return exitCode > 128 ? NAMES.get(exitCode - 128) : undefined;
}

/** How a process ended, without a command's limits unless they are told. */
export function outcomeOf(
  { exitCode, outOfMemory }: ProcessExit,
  { durationMs = 0, timedOut = false, truncated = false } = {},
): ExecOutcome {
  const signal = exitSignal(exitCode);
  return { exitCode, ...(signal === undefined ? {} : { signal }), timedOut, truncated, outOfMemory, durationMs };
}
