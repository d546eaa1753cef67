import { type Level, type LevelValue, levelName, type Scope } from "@agentfense/permission";

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

/** Something that was looked at, read or written for the first time, for who wants to know what a command needs. */
export interface AccessEvent {
  kind: "accessed";
  path: string;
  /** The level it took. */
  level: Exclude<Level, "none">;
}

/** More paths than this nobody makes rules of; an agent must not fill the memory of the server with names. */
const MOST = 200_000;

/** Tells of each path once for each level that an operation on it took. */
export class AccessRecord {
  readonly #levels = new Map<string, LevelValue>();
  readonly #emit: (event: AccessEvent) => void;

  constructor(emit: (event: AccessEvent) => void) {
    this.#emit = emit;
  }

  note(path: string, level: LevelValue): void {
    const known = this.#levels.get(path);
    if (known === undefined ? this.#levels.size >= MOST : known >= level) return;
    this.#levels.set(path, level);
    this.#emit({ kind: "accessed", path, level: levelName(level) as AccessEvent["level"] });
  }
}
