import type { MessagePort } from "node:worker_threads";
import { OPCODE_LIMIT, opcodeName } from "@agentfense/fuse";
import type { Rule } from "@agentfense/permission";
import type { FileSystemEvent } from "../filesystem/denials.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { QuotaLimits, QuotaUse } from "../filesystem/quota.ts";
import type { StaleReport } from "../filesystem/refresh.ts";
import type { CallAnswer, CallName } from "./calls.ts";

// What the host thread and a mount thread say to each other. Descriptors are numbers: both are one process.

/** What a mount thread is born with. */
export interface MountThreadData {
  readonly port: MessagePort;
  /** The memory of its MountCounters. */
  readonly counters: SharedArrayBuffer;
  /** The memory of the server's DescriptorBudget. */
  readonly budget: SharedArrayBuffer;
  /** Where all mount threads count how many of them are awake. */
  readonly awake: SharedArrayBuffer;
  /** Descriptors that this mount thread may keep for directories. */
  readonly openDirectories: number;
}

export interface MountTreeSpec {
  readonly lowers: readonly string[];
  readonly frozen: readonly string[];
  readonly delta: string | undefined;
  readonly rules: readonly Rule[];
  readonly revocable: boolean;
  readonly recordsAccess: boolean;
}

export interface MountSpec {
  readonly trees: readonly MountTreeSpec[];
  /** Whether the trees are directories of the mount; otherwise the only one is the mount. */
  readonly joined: boolean;
  /** The quota of all trees together. */
  readonly quota: QuotaLimits | undefined;
  /** What lies beneath the deltas takes of it. */
  readonly usedBeneath: QuotaUse | undefined;
  readonly owner: Owner | undefined;
  readonly passthrough: boolean;
  readonly xattrs: boolean;
  readonly privileged: boolean;
}

/** One of the trees of a mount, by its number. */
interface OfTree {
  readonly mount: number;
  readonly tree: number;
}

export type ToMountThread =
  /** Open the layers and compile the rules; nothing is mounted yet. */
  | { readonly kind: "prepare"; readonly mount: number; readonly spec: MountSpec }
  /** Serve what was prepared on this /dev/fuse descriptor. */
  | { readonly kind: "serve"; readonly mount: number; readonly fd: number }
  /** Answered by `answer` or `refusal` with the same number. */
  | ({ readonly kind: "call"; readonly call: number; readonly name: CallName; readonly input: unknown } & OfTree)
  /** Stop serving and close everything; the host closes the descriptor afterwards. */
  | { readonly kind: "drop"; readonly mount: number }
  | { readonly kind: "stop" };

export type FromMountThread =
  | { readonly kind: "started"; readonly doorbell: number }
  /** `locks` are the descriptors that lock the deltas; the host closes them should the mount thread die. */
  | { readonly kind: "prepared"; readonly mount: number; readonly locks: readonly number[] }
  | { readonly kind: "failed"; readonly mount: number; readonly error: Error }
  /** With what the kernel granted each tree. */
  | { readonly kind: "ready"; readonly mount: number; readonly passthrough: readonly boolean[] }
  | { readonly kind: "closed"; readonly mount: number }
  | ({ readonly kind: "answer"; readonly mount: number; readonly call: number } & CallAnswer<unknown>)
  | {
      readonly kind: "refusal";
      readonly mount: number;
      readonly call: number;
      readonly error: Error;
      readonly code?: string;
    }
  | { readonly kind: "stale"; readonly mount: number; readonly stale: StaleReport }
  | ({ readonly kind: "event"; readonly event: FileSystemEvent } & OfTree)
  | { readonly kind: "log"; readonly mount: number | undefined; readonly message: string };

/** What a mount thread has done since it started. */
export interface MountCounts {
  /** Counts by the kernel's name of the operation; those that never came are absent. */
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
 * Counters in memory that the mount thread writes and the host reads: counting costs an addition, reading costs the mount thread
 * nothing. One number per opcode, then the denials and the longest turn.
 */
export class MountCounters {
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

  static sum(counters: Iterable<MountCounters>): MountCounts {
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
