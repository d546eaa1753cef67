import { type Level, levelName, type Scope } from "@agentfense/permission";
import type { AccessEvent } from "./accesses.ts";

/** Something the rules or the quota refused, for the audit log; and, where that is recorded, what was done. */
export type FileSystemEvent =
  | AccessEvent
  | {
      kind: "permission_denied";
      path: string;
      operation: string;
      level: Level;
      /** Index of the deciding rule; -1 when no rule matched. */
      rule: number;
      pid: number;
      /** How many events were left out before this one because there were too many. */
      suppressed: number;
    }
  | { kind: "quota_exceeded"; path: string; operation: string; pid: number; suppressed: number };

const BURST = 50;
const PER_SECOND = 20;

/** Passes events on at a bounded rate: an agent that probes a million paths must not fill the operator's disk. */
export class EventGate {
  readonly #emit: (event: FileSystemEvent) => void;
  readonly #onDenied: (() => void) | undefined;
  #tokens = BURST;
  #refilledAtMs = performance.now();
  #suppressed = 0;

  constructor(emit: (event: FileSystemEvent) => void, onDenied: (() => void) | undefined) {
    this.#emit = emit;
    this.#onDenied = onDenied;
  }

  denied(path: () => string, operation: string, scope: Scope, pid: number): void {
    this.#onDenied?.();
    const suppressed = this.#admit();
    if (suppressed < 0) return;
    const level = levelName(scope.level);
    this.#emit({ kind: "permission_denied", path: path(), operation, level, rule: scope.rule, pid, suppressed });
  }

  overQuota(path: () => string, operation: string, pid: number): void {
    const suppressed = this.#admit();
    if (suppressed < 0) return;
    this.#emit({ kind: "quota_exceeded", path: path(), operation, pid, suppressed });
  }

  /** -1: not this one. Otherwise how many were left out since the last. */
  #admit(): number {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + ((now - this.#refilledAtMs) * PER_SECOND) / 1000);
    this.#refilledAtMs = now;
    if (this.#tokens < 1) {
      this.#suppressed += 1;
      return -1;
    }
    this.#tokens -= 1;
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    return suppressed;
  }
}
