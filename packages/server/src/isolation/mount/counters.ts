import { OPCODE_LIMIT, opcodeName } from "@agentfense/fuse";

/** What an engine has done since it started. */
export interface EngineCounts {
  /** By the kernel's name of the operation; those that never came are absent. */
  readonly fuseOperations: Readonly<Record<string, number>>;
  /** Refusals by rule, those included that no event tells of because there were too many. */
  readonly denials: number;
}

const DENIALS = OPCODE_LIMIT;

/**
 * Counters in memory that the engine thread writes and the host reads: counting costs an addition, reading costs the engine
 * nothing. One number per opcode, then the denials.
 */
export class EngineCounters {
  readonly buffer: SharedArrayBuffer;
  readonly requests: Float64Array;
  readonly #all: Float64Array;

  constructor(buffer = new SharedArrayBuffer((OPCODE_LIMIT + 1) * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#all = new Float64Array(buffer);
    this.requests = this.#all.subarray(0, OPCODE_LIMIT);
  }

  denied(): void {
    this.#all[DENIALS]! += 1;
  }

  static sum(counters: Iterable<EngineCounters>): EngineCounts {
    const fuseOperations: Record<string, number> = {};
    let denials = 0;
    for (const each of counters) {
      denials += each.#all[DENIALS]!;
      for (const [opcode, count] of each.requests.entries()) {
        if (count > 0) fuseOperations[opcodeName(opcode)] = (fuseOperations[opcodeName(opcode)] ?? 0) + count;
      }
    }
    return { fuseOperations, denials };
  }
}
