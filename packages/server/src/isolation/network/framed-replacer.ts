import type { Replacer } from "./stream-replacer.ts";

/** How a stream of messages is put together. */
export interface Framing {
  /** How long the head of a message is, as far as what is there of it tells. */
  headLength(head: Buffer): number;
  /** How long the message behind a whole head is. */
  contentLength(head: Buffer): number;
}

const MASKED = 0x80;
const SHORT = 126;
const LONG = 127;

/** RFC 6455, 5.2. */
export const WEBSOCKET_FRAMES: Framing = {
  headLength(head) {
    if (head.length < 2) return 2;
    const length = head[1]! & ~MASKED;
    return 2 + (length === SHORT ? 2 : length === LONG ? 8 : 0) + (head[1]! & MASKED ? 4 : 0);
  },
  contentLength(head) {
    const length = head[1]! & ~MASKED;
    if (length === SHORT) return head.readUInt16BE(2);
    return length === LONG ? Number(head.readBigUInt64BE(2)) : length;
  },
};

/** A byte that says whether the message is packed, and its length. */
export const GRPC_MESSAGES: Framing = { headLength: () => 5, contentLength: (head) => head.readUInt32BE(1) };

/** Replaces message by message. One goes on when it is whole, whatever it ends with, since the next one may be long in coming. */
export class FramedReplacer implements Replacer {
  readonly #framing: Framing;
  readonly #open: () => Replacer;
  #head = Buffer.alloc(0);
  #content: { readonly replacer: Replacer; left: number } | undefined;

  constructor(framing: Framing, open: () => Replacer) {
    this.#framing = framing;
    this.#open = open;
  }

  push(chunk: Buffer): Buffer {
    const parts: Buffer[] = [];
    for (let rest = chunk; rest.length > 0; ) {
      if (this.#content === undefined) {
        const missing = this.#framing.headLength(this.#head) - this.#head.length;
        this.#head = Buffer.concat([this.#head, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (this.#head.length < this.#framing.headLength(this.#head)) continue;
        parts.push(this.#head);
        this.#content = { replacer: this.#open(), left: this.#framing.contentLength(this.#head) };
        this.#head = Buffer.alloc(0);
      } else {
        const part = rest.subarray(0, this.#content.left);
        rest = rest.subarray(part.length);
        this.#content.left -= part.length;
        parts.push(this.#content.replacer.push(part));
      }
      if (this.#content.left > 0) continue;
      parts.push(this.#content.replacer.flush());
      this.#content = undefined;
    }
    return Buffer.concat(parts);
  }

  /** The rest of a message that is not whole. */
  flush(): Buffer {
    return Buffer.concat([this.#head, this.#content?.replacer.flush() ?? Buffer.alloc(0)]);
  }
}
