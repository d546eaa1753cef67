/** How much of each output may wait for its reader before the command has to wait. */
export const WAITING_BYTES = 1024 * 1024;
/** Kept of each output that nobody reads, for the result. */
export const COLLECTED_BYTES = 10 * 1024 * 1024;

/** Small pieces are put together up to here: a command that writes byte by byte must not cost a piece for each. */
const MERGED_BYTES = 64 * 1024;
/** What a piece costs besides its bytes. */
const PIECE_WEIGHT = 64;
const TAKEN_AT_MOST = 256;

/** Who has an output. Nobody: it is kept for whoever comes, in the end for the result. */
export type Reader = "nobody" | "callback" | "stream" | "events";

interface Piece {
  readonly order: number;
  lastOrder: number;
  buffer: Uint8Array;
  used: number;
}

/** One output of a command on its way to its reader. */
export class Outlet {
  reader: Reader = "nobody";
  /** The reader wants no more of it. */
  cancelled = false;
  #pieces: Piece[] = [];
  #first = 0;
  #bytes = 0;
  #dropped = 0;

  /** Bytes beyond the limit that were lost. */
  get dropped(): number {
    return this.#dropped;
  }

  /** As much waits here as may. */
  get isFull(): boolean {
    return this.#bytes + (this.#pieces.length - this.#first) * PIECE_WEIGHT >= WAITING_BYTES;
  }

  /** Where its next piece is among those of both outputs. */
  get nextOrder(): number | undefined {
    return this.#pieces[this.#first]?.order;
  }

  /** `order` is that among the pieces of both outputs; with `collect`, it matters no more, and there is a limit. */
  add(data: Uint8Array, order: number, collect: boolean): void {
    if (this.cancelled || data.byteLength === 0) return;
    const room = collect ? Math.max(0, COLLECTED_BYTES - this.#bytes) : data.byteLength;
    const kept = data.byteLength > room ? data.subarray(0, room) : data;
    this.#dropped += data.byteLength - kept.byteLength;
    if (kept.byteLength === 0) return;
    this.#bytes += kept.byteLength;
    const last = this.#pieces[this.#pieces.length - 1];
    const continues =
      last !== undefined && this.#pieces.length > this.#first && (collect || last.lastOrder === order - 1);
    if (continues && last.used + kept.byteLength <= MERGED_BYTES) append(last, kept, order);
    else this.#pieces.push({ order, lastOrder: order, buffer: kept, used: kept.byteLength });
  }

  take(): Uint8Array | undefined {
    const piece = this.#pieces[this.#first];
    if (piece === undefined) return undefined;
    this.#first += 1;
    // What was taken is let go of, now and then: the rest moves for it.
    if (this.#first === this.#pieces.length || this.#first >= TAKEN_AT_MOST) {
      this.#pieces.splice(0, this.#first);
      this.#first = 0;
    }
    this.#bytes -= piece.used;
    return piece.buffer.subarray(0, piece.used);
  }

  /** Everything that waits, which goes on waiting. */
  collected(): Uint8Array {
    const all = new Uint8Array(this.#bytes);
    let at = 0;
    for (const { buffer, used } of this.#pieces.slice(this.#first)) {
      all.set(buffer.subarray(0, used), at);
      at += used;
    }
    return all;
  }

  /** Nobody wants what is here or comes. */
  cancel(): void {
    this.cancelled = true;
    this.#pieces = [];
    this.#first = 0;
    this.#bytes = 0;
  }
}

function append(piece: Piece, data: Uint8Array, order: number): void {
  const length = piece.used + data.byteLength;
  // The first buffer belongs to whoever sent it: it has no room, and is never written to.
  if (length > piece.buffer.byteLength) {
    const grown = new Uint8Array(Math.min(MERGED_BYTES, Math.max(1024, 2 * length)));
    grown.set(piece.buffer.subarray(0, piece.used));
    piece.buffer = grown;
  }
  piece.buffer.set(data, piece.used);
  piece.used = length;
  piece.lastOrder = order;
}
