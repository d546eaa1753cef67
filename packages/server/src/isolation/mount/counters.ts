import { OPCODE_LIMIT, opcodeName } from "@agentfense/fuse";

/** What an engine has done since it started. */
export interface EngineCounts {
  /** By the kernel's name of the operation; those that never came are absent. */
  readonly fuseOperations: Readonly<Record<string, number>>;
  /** Refusals by rule, those included that no event tells of because there were too many. */
  readonly denials: number;
  /** The most entries that one turn dealt with, for as long as all others waited. */
  readonly longestTurn: number;
}

const DENIALS = OPCODE_LIMIT;
const LONGEST_TURN = OPCODE_LIMIT + 1;
const LENGTH = OPCODE_LIMIT + 2;

/**
 * Counters in memory that the engine thread writes and the host reads: counting costs an addition, reading costs the engine
 * nothing. One number per opcode, then the denials and the longest turn.
 */
export class EngineCounters {
  readonly buffer: SharedArrayBuffer;
  readonly requests: Float64Array;
  readonly #all: Float64Array;

  constructor(buffer = new SharedArrayBuffer(LENGTH * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#all = new Float64Array(buffer);
    this.requests = this.#all.subarray(0, OPCODE_LIMIT);
  }

  denied(): void {
    this.#all[DENIALS]! += 1;
  }

  tookTurn(entries: number): void {
    if (entries > this.#all[LONGEST_TURN]!) this.#all[LONGEST_TURN] = entries;
  }

  static sum(counters: Iterable<EngineCounters>): EngineCounts {
    const fuseOperations: Record<string, number> = {};
    let denials = 0;
    let longestTurn = 0;
    for (const each of counters) {
      denials += each.#all[DENIALS]!;
      longestTurn = Math.max(longestTurn, each.#all[LONGEST_TURN]!);
      for (const [opcode, count] of each.requests.entries()) {
        if (count > 0) fuseOperations[opcodeName(opcode)] = (fuseOperations[opcodeName(opcode)] ?? 0) + count;
      }
    }
    return { fuseOperations, denials, longestTurn };
  }
}
