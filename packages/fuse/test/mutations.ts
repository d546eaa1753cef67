import { IN_HEADER_SIZE, Opcode, type OpcodeName } from "../src/abi.ts";
import { SAMPLES } from "./samples.ts";
import { message, u32, u64 } from "./wire.ts";

const OPCODES = Object.keys(Opcode) as OpcodeName[];
const EDGES = [0, 1, 7, 8, 15, 16, 255, 256, 4095, 4096, 1 << 20, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_ffff];
const MAX_LENGTH = 4096;

/** A small seeded generator (mulberry32): the same seed gives the same requests. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 up to, but not including, the limit. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i < length; i++) bytes[i] = this.below(256);
    return bytes;
  }
}

export interface Mutant {
  readonly bytes: Buffer;
  /** What was done to it, for the report of a failure. */
  readonly what: string;
}

type Mutate = (body: Buffer, chance: Chance, someNode: number) => Buffer;

const BODY_MUTATIONS: Readonly<Record<string, Mutate>> = {
  "left alone": (body) => body,
  "cut short": (body, chance) => body.subarray(0, chance.below(body.length + 1)),
  "made longer": (body, chance) => Buffer.concat([body, chance.bytes(chance.below(64))]),
  "all random": (_body, chance) => chance.bytes(chance.below(chance.pick([16, 64, 256, MAX_LENGTH]))),
  "without any NUL": (body) => body.map((byte) => byte || 0x41) as Buffer,
  "emptied names": (body, chance) => Buffer.concat([body.subarray(0, chance.below(body.length + 1)), Buffer.alloc(8)]),
  "with flipped bytes": (body, chance) => {
    const copy = Buffer.from(body);
    for (let i = 0; i <= chance.below(4) && copy.length > 0; i++) copy[chance.below(copy.length)] = chance.below(256);
    return copy;
  },
  // So that handles, offsets and names meet what earlier requests made.
  "with a small number": (body, chance) => {
    const copy = Buffer.from(body);
    for (let i = 0; i < 3 && copy.length >= 8; i++) copy.set(u64(chance.below(30)), chance.below(copy.length >> 3) * 8);
    return copy;
  },
  "on other names": (body, chance, someNode) => {
    const copy = Buffer.from(body);
    for (let at = 0; at < copy.length; at++) if (copy[at] === 0xff) copy[at] = 0x61 + chance.below(5);
    if (copy.length >= 16) copy.set(u64(someNode), 0);
    return copy;
  },
  "with a lying number": (body, chance) => {
    const copy = Buffer.from(body);
    if (copy.length >= 4) copy.set(u32(chance.pick(EDGES)), chance.below(copy.length >> 2) * 4);
    return copy;
  },
};

/**
 * Requests that no kernel sends: seldom quite right, wrong in every way a length, a number or a name can be. Most are about
 * the root or one of the last thirty nodes up to `newestNode`.
 */
export function mutant(chance: Chance, newestNode = 30): Mutant {
  const name = chance.pick(OPCODES);
  const kind = chance.pick(Object.keys(BODY_MUTATIONS));
  const body = name === "BatchForget" && chance.below(2) === 0 ? lyingBatch(chance) : SAMPLES[name].body;
  const someNode = () => Math.max(1, newestNode - chance.below(30));
  const mutated = BODY_MUTATIONS[kind]!(body, chance, someNode());
  const header = {
    opcode: chance.below(40) === 0 ? chance.pick([0, 7, 19, 31, 37, 41, 50, 54, 4096, ...EDGES]) : Opcode[name],
    node: chance.pick([1, 1, someNode(), someNode(), someNode(), chance.pick([0, 2n ** 53n + 1n, 2n ** 64n - 1n])]),
    unique: BigInt(chance.below(2 ** 31)) * 2n + 2n,
    uid: chance.pick(EDGES),
    extensionUnits: chance.below(6) === 0 ? chance.pick([1, 2, 5, 100, 0xffff]) : 0,
  };
  const bytes = message({ ...header, body: mutated });
  const lie = chance.below(20);
  if (lie === 0) bytes.writeUInt32LE(chance.pick(EDGES), 0);
  const short = lie === 1 ? bytes.subarray(0, chance.below(IN_HEADER_SIZE)) : bytes;
  return { bytes: short, what: `${name} (opcode ${header.opcode}) ${kind}: ${short.toString("hex")}` };
}

/** A BATCH_FORGET that announces more, or fewer, than it brings. */
function lyingBatch(chance: Chance): Buffer {
  const items = Array.from({ length: chance.below(5) }, () => u64(chance.below(30), chance.below(3)));
  return Buffer.concat([u32(chance.pick(EDGES), 0), ...items]);
}
