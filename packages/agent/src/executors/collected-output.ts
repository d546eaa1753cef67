import { OUTPUT_BYTES } from "./executor.ts";

/** The beginning of an output, of which the rest is read and dropped. */
export class CollectedOutput {
  readonly #pieces: Buffer[] = [];
  #size = 0;
  #isTruncated = false;

  add(piece: Buffer): void {
    const room = OUTPUT_BYTES - this.#size;
    if (piece.byteLength > room) this.#isTruncated = true;
    if (room <= 0) return;
    // A copy: a small piece may be part of a large buffer, which would be kept as a whole.
    const kept = Buffer.from(piece.subarray(0, room));
    this.#pieces.push(kept);
    this.#size += kept.byteLength;
  }

  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  get text(): string {
    return textWithin(Buffer.concat(this.#pieces, this.#size), this.#isTruncated);
  }
}

/** As UTF-8. Replaced characters are longer than what they stand for; a character that was cut is dropped. */
function textWithin(bytes: Uint8Array, isCut: boolean): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: isCut });
}

/** The same for output that somebody else has collected. */
export function limitedText(bytes: Uint8Array): { readonly text: string; readonly isTruncated: boolean } {
  const isTruncated = bytes.byteLength > OUTPUT_BYTES;
  return { text: textWithin(bytes.subarray(0, OUTPUT_BYTES), isTruncated), isTruncated };
}
