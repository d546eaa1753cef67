/** What is looked for in a stream, and what stands there afterwards. Both have one length: whoever counted bytes stays right. */
export interface Replacement {
  /** Printable ASCII. */
  readonly from: Buffer;
  /** Absent: it stays, and is only told of. */
  readonly to?: Buffer | undefined;
  /** Only the first one. */
  readonly once?: boolean;
  /** Told for each occurrence that was replaced, or that stays. */
  readonly onFound?: ((isReplaced: boolean) => void) | undefined;
}

/** What a stream goes through. */
export interface Replacer {
  /** What can go on. The chunk's memory may be changed. */
  push(chunk: Buffer): Buffer;
  /** What still waits, when nothing follows. */
  flush(): Buffer;
}

/**
 * Replaces texts in a stream, also where they lie across the borders of its chunks. What could be the beginning of one waits for
 * the next chunk: the printable end of a chunk, whatever it is. Were it only what really begins like a text that is looked for,
 * somebody who makes a server send a guess and pause could tell by the delay how much of the guess is right.
 * Lines and binary data go on at once, and everything does where texts are only told of.
 */
export class StreamReplacer implements Replacer {
  readonly #replacements: { readonly rule: Replacement; isDone: boolean }[];
  /** One more byte than can wait. */
  readonly #longest: number;
  readonly #isReplacing: boolean;
  #waiting: Buffer = Buffer.alloc(0);

  /** `longest` hides the length of the longest text from whoever sees how much waits. */
  constructor(replacements: readonly Replacement[], longest: number = 0) {
    this.#replacements = replacements.map((rule) => ({ rule, isDone: false }));
    this.#isReplacing = replacements.some(({ to }) => to !== undefined);
    this.#longest = replacements.reduce((most, { from }) => Math.max(most, from.length), longest);
  }

  push(chunk: Buffer): Buffer {
    const known = this.#waiting.length;
    const all = known === 0 ? chunk : Buffer.concat([this.#waiting, chunk]);
    this.#replace(all, known);
    const end = all.length - printableEnd(all, this.#longest - 1);
    this.#waiting = Buffer.from(all.subarray(end)); // a copy: it must not hold the whole chunk
    return this.#isReplacing ? all.subarray(0, end) : chunk;
  }

  flush(): Buffer {
    const rest = this.#waiting;
    this.#waiting = Buffer.alloc(0);
    return this.#isReplacing ? rest : this.#waiting;
  }

  /** The first `known` bytes were looked at before: what lies wholly within them was found then. */
  #replace(data: Buffer, known: number): void {
    for (const replacement of this.#replacements) {
      const { from, to, once, onFound } = replacement.rule;
      let at = data.indexOf(from, Math.max(0, known - from.length + 1));
      for (; at !== -1; at = data.indexOf(from, at + from.length)) {
        const isReplaced = to !== undefined && !replacement.isDone;
        if (isReplaced) to.copy(data, at);
        if (once) replacement.isDone = true;
        onFound?.(isReplaced);
      }
    }
  }
}

/** How many bytes at the end are printable, up to `most`. */
function printableEnd(data: Buffer, most: number): number {
  let count = 0;
  while (count < most && count < data.length && isPrintable(data[data.length - 1 - count]!)) count++;
  return count;
}

function isPrintable(byte: number): boolean {
  return byte >= 0x20 && byte <= 0x7e;
}
