import { strict as assert } from "node:assert";
import { type Architecture, AUDIT_ARCH } from "../../../src/isolation/seccomp/numbers.ts";

/** A system call as a filter sees it. */
export interface Call {
  readonly number: number;
  readonly args: readonly bigint[];
}

export interface Run {
  /** What the filter returned, an action with its errno. */
  readonly value: number;
  readonly steps: number;
}

/** Runs classic BPF over one call. Whatever the kernel's checker would refuse is an error here. */
export function run(program: Buffer, call: Call, audit: number): Run {
  const data = seccompData(call, audit);
  const length = program.length / 8;
  let accumulator = 0;
  let at = 0;
  for (let steps = 1; ; steps += 1) {
    assert(Number.isInteger(length) && at < length, `jumped to ${at} of ${length}`);
    const code = program.readUInt16LE(at * 8);
    const [ifTrue, ifFalse] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)];
    const k = program.readUInt32LE(at * 8 + 4);
    at += 1;
    if (code === 0x06) return { value: k, steps };
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x54) accumulator = (accumulator & k) >>> 0;
    else if (code === 0x05) at += k;
    else if (code === 0x15) at += accumulator === k ? ifTrue : ifFalse;
    else if (code === 0x25) at += accumulator > k ? ifTrue : ifFalse;
    else if (code === 0x35) at += accumulator >= k ? ifTrue : ifFalse;
    else assert.fail(`no such instruction: 0x${code.toString(16)}`);
  }
}

export function runNative(program: Buffer, call: Call, architecture: Architecture): Run {
  return run(program, call, AUDIT_ARCH[architecture]);
}

/** struct seccomp_data */
function seccompData({ number, args }: Call, audit: number): Buffer {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(audit, 4);
  data.writeBigUInt64LE(0x7f00_1234_5678n, 8);
  for (const [index, arg] of args.entries()) data.writeBigUInt64LE(arg, 16 + 8 * index);
  return data;
}
