import { IN_HEADER_SIZE } from "./abi.ts";

/** Who asked: ids as the kernel reports them in the mount's own user and pid namespaces. */
export interface Caller {
  readonly uid: number;
  readonly gid: number;
  /** Thread id; 0 when the caller lives outside the pid namespace of the mount. */
  readonly pid: number;
}

const HIGH = 0x1_0000_0000;

/**
 * A view of one request in the receive buffer. The buffer is used again for the next request, so a handler copies what it
 * wants to keep. Offsets are bytes from the start of the body, that is, behind the header.
 */
export class Request implements Caller {
  readonly bytes: Buffer;
  readonly #words: Uint32Array;
  length = 0;

  constructor(capacity: number) {
    // Off V8's heap and never moved: the kernel writes into it.
    const memory = new ArrayBuffer(capacity);
    this.bytes = Buffer.from(memory);
    this.#words = new Uint32Array(memory);
  }

  get opcode(): number {
    return this.#words[1]!;
  }

  get uniqueLow(): number {
    return this.#words[2]!;
  }

  get uniqueHigh(): number {
    return this.#words[3]!;
  }

  get nodeId(): number {
    return this.#words[4]! + this.#words[5]! * HIGH;
  }

  get uid(): number {
    return this.#words[6]!;
  }

  get gid(): number {
    return this.#words[7]!;
  }

  get pid(): number {
    return this.#words[8]!;
  }

  /** The header's own word for the length; it must agree with what was read. */
  get declaredLength(): number {
    return this.#words[0]!;
  }

  /** Extensions (security context, groups) stand at the end of the message and are not part of the body. */
  get bodyEnd(): number {
    const extensions = (this.bytes[36]! | (this.bytes[37]! << 8)) * 8;
    return Math.max(IN_HEADER_SIZE, this.length - extensions);
  }

  u32(offset: number): number {
    return this.#words[(IN_HEADER_SIZE + offset) >> 2]!;
  }

  u64(offset: number): number {
    const index = (IN_HEADER_SIZE + offset) >> 2;
    return this.#words[index]! + this.#words[index + 1]! * HIGH;
  }

  i64(offset: number): number {
    const index = (IN_HEADER_SIZE + offset) >> 2;
    return this.#words[index]! + (this.#words[index + 1]! | 0) * HIGH;
  }

  /** The NUL-terminated name at an offset as a byte string, or undefined when it is empty or not terminated. */
  name(offset: number): string | undefined {
    const start = IN_HEADER_SIZE + offset;
    const end = this.bytes.indexOf(0, start);
    if (end <= start || end >= this.bodyEnd) return undefined;
    return this.bytes.toString("latin1", start, end);
  }
}
