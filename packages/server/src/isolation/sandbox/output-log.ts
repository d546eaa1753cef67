import { IsolationError, throwIfCancelled } from "../backend/isolation-error.ts";
import { Bell } from "../waiting.ts";
import type { AttachOptions } from "./api.ts";

export type OutputName = "stdout" | "stderr" | "terminal";

/** Output as it was printed. `lostBytes` of the same stream came before it and were not kept. */
export interface OutputPiece {
  readonly kind: OutputName;
  readonly data: Buffer;
  readonly lostBytes: number;
}

/** Kept of each stream, with what it takes to keep it. */
const STREAM_BYTES = 1024 ** 2;
/** What a block costs besides its bytes. */
const BLOCK_COST = 256;
/** Short pieces of one stream that follow each other share a block. */
const SHARED_BLOCK_BYTES = 4096;
const SMALL_BLOCK_BYTES = 256;
/** Who attaches at once after the start misses nothing: as long as this, a process that nobody reads is held back. */
const FIRST_READER_MS = 1_000;
/** A reader who takes nothing at all for so long, while the process waits for it, is cut off. */
const READER_PATIENCE_MS = 60_000;

interface Block {
  /** Its place among those of all streams. */
  readonly order: number;
  /** Where it begins, counted from the start of the stream. */
  readonly offset: number;
  readonly bytes: Buffer;
  length: number;
}

/** What is kept of one stream: blocks, oldest first. */
class Ring {
  readonly name: OutputName;
  readonly blocks: Block[] = [];
  /** How many blocks were dropped. */
  first = 0;
  /** All that was printed so far. */
  end = 0;
  cost = 0;

  constructor(name: OutputName) {
    this.name = name;
  }

  /** Behind all that was printed so far. */
  newest(): Position {
    return { block: this.first + Math.max(this.blocks.length - 1, 0), offset: this.end };
  }
}

/** How far a reader is in a stream. */
interface Position {
  block: number;
  offset: number;
}

interface Reader {
  readonly positions: ReadonlyMap<Ring, Position>;
  /** When it was given its last piece; for ever in the future while it asks for another. */
  givenAtMs: number;
  isCut: boolean;
}

/** The memory that all logs of a sandbox share. When it is full the longest of them loses its oldest output. */
export class OutputRoom {
  readonly logs = new Set<OutputLog>();
  readonly #limit: number;
  /** Rings when there may be more room. */
  readonly freed = new Bell();
  used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether there is room, after dropping what may be dropped. */
  make(bytes: number): boolean {
    while (this.used > 0 && this.used + bytes > this.#limit) {
      const droppable = [...this.logs].flatMap((log) => log.droppable());
      const largest = droppable.reduce<Ring | undefined>(
        (most, ring) => (most === undefined || ring.cost > most.cost ? ring : most),
        undefined,
      );
      if (largest === undefined) return false;
      this.drop(largest);
    }
    return true;
  }

  drop(ring: Ring): void {
    const block = ring.blocks.shift();
    if (block === undefined) return;
    ring.first += 1;
    this.charge(ring, -costOf(block.bytes));
  }

  charge(ring: Ring, bytes: number): void {
    ring.cost += bytes;
    this.used += bytes;
    if (bytes < 0) this.freed.ring();
  }
}

/**
 * The last output of a process, for those who attach to it. With nobody attached the oldest is dropped, and the process never
 * waits. What somebody who is attached has not read yet is not dropped: then the process waits.
 */
export class OutputLog {
  readonly #room: OutputRoom;
  readonly #patienceMs: number;
  readonly #rings: readonly Ring[];
  readonly #readers = new Set<Reader>();
  readonly #changed = new Bell();
  #isAwaitingReader: boolean;
  #nextOrder = 0;
  #last: { readonly ring: Ring; readonly block: Block } | undefined;
  #isComplete = false;

  constructor(
    names: readonly OutputName[],
    room: OutputRoom,
    { firstReaderMs = FIRST_READER_MS, patienceMs = READER_PATIENCE_MS } = {},
  ) {
    this.#rings = names.map((name) => new Ring(name));
    this.#room = room;
    this.#patienceMs = patienceMs;
    this.#isAwaitingReader = firstReaderMs > 0;
    room.logs.add(this);
    setTimeout(() => this.#awaitNoReader(), firstReaderMs).unref();
  }

  /** Resolves when there is room for more. */
  async push(name: OutputName, data: Buffer): Promise<void> {
    const ring = this.#rings.find((each) => each.name === name);
    if (ring === undefined || data.length === 0 || this.#isComplete) return;
    if (!this.#join(ring, data)) {
      const bytes = blockFor(data, this.#last?.ring === ring);
      while (!this.#isComplete && this.#isHeld(ring, bytes.length)) await this.#changed.wait(this.#patienceMs);
      let hasRoom = this.#room.make(costOf(bytes));
      // Somebody reads here, so nothing is lost: what others keep has to go first.
      while (!this.#isComplete && !hasRoom && this.#readers.size > 0) {
        await this.#room.freed.wait(this.#patienceMs);
        for (const log of this.#room.logs) log.cutIdle();
        hasRoom = this.#room.make(costOf(bytes));
      }
      if (this.#isComplete) return; // it was forgotten meanwhile
      if (hasRoom) this.#keep(ring, bytes, data);
    }
    ring.end += data.length;
    this.#changed.ring();
  }

  /** Nothing comes any more. */
  end(): void {
    this.#isComplete = true;
    this.#changed.ring();
  }

  /** Forgets everything; who still reads gets no more. */
  release(): void {
    for (const ring of this.#rings) while (ring.blocks.length > 0) this.#room.drop(ring);
    this.#room.logs.delete(this);
    this.end();
  }

  /** From the oldest that is kept to the end, or from now on. Attached from the call on, until the iteration ends. */
  attach({ signal, skipKept = false }: AttachOptions = {}): AsyncGenerator<OutputPiece> & Disposable {
    const positions = new Map(this.#rings.map((ring) => [ring, skipKept ? ring.newest() : { block: 0, offset: 0 }]));
    const reader: Reader = { positions, givenAtMs: performance.now(), isCut: false };
    this.#readers.add(reader);
    this.#isAwaitingReader = false;
    const detach = (): void => {
      this.#readers.delete(reader);
      this.#changed.ring();
    };
    return Object.assign(this.#read(reader, signal), { [Symbol.dispose]: detach });
  }

  /** Rings whose oldest block nobody needs any more. */
  droppable(): Ring[] {
    return this.#rings.filter((ring) => ring.blocks[0] !== undefined && !this.#isNeeded(ring, ring.blocks[0]));
  }

  async *#read(reader: Reader, signal: AbortSignal | undefined): AsyncGenerator<OutputPiece> {
    const wake = (): void => this.#changed.ring();
    signal?.addEventListener("abort", wake);
    try {
      for (;;) {
        throwIfCancelled(signal);
        if (reader.isCut) throw tooSlow(this.#patienceMs);
        reader.givenAtMs = Number.POSITIVE_INFINITY;
        const piece = this.#next(reader);
        if (piece !== undefined) {
          reader.givenAtMs = performance.now();
          yield piece;
        } else if (this.#isComplete) return;
        else await this.#changed.wait();
      }
    } finally {
      signal?.removeEventListener("abort", wake);
    }
  }

  #next(reader: Reader): OutputPiece | undefined {
    let found: { ring: Ring; position: Position; block: Block | undefined } | undefined;
    for (const [ring, position] of reader.positions) {
      if (position.offset === ring.end) continue;
      position.block = Math.max(position.block, ring.first);
      const at = ring.blocks[position.block - ring.first];
      if (at !== undefined && position.offset >= at.offset + at.length) position.block += 1;
      const block = ring.blocks[position.block - ring.first];
      const order = block?.order ?? Number.POSITIVE_INFINITY;
      if (found === undefined || order < (found.block?.order ?? Number.POSITIVE_INFINITY)) {
        found = { ring, position, block };
      }
    }
    if (found === undefined) return undefined;
    const { ring, position, block } = found;
    const from = Math.max(position.offset, block?.offset ?? ring.end);
    const data = block === undefined ? Buffer.alloc(0) : block.bytes.subarray(from - block.offset, block.length);
    const lostBytes = from - position.offset;
    position.offset = from + data.length;
    this.#changed.ring();
    this.#room.freed.ring();
    return { kind: ring.name, data, lostBytes };
  }

  /** Adds to the last block, if that is of this stream and has room. */
  #join(ring: Ring, data: Buffer): boolean {
    const last = this.#last;
    if (last?.ring !== ring || ring.blocks.at(-1) !== last.block) return false;
    const { block } = last;
    if (block.bytes.length - block.length < data.length || block.offset + block.length !== ring.end) return false;
    data.copy(block.bytes, block.length);
    block.length += data.length;
    return true;
  }

  #keep(ring: Ring, bytes: Buffer, data: Buffer): void {
    data.copy(bytes);
    const block = { order: this.#nextOrder++, offset: ring.end, bytes, length: data.length };
    ring.blocks.push(block);
    this.#last = { ring, block };
    this.#room.charge(ring, costOf(bytes));
  }

  /** Whether the process waits for somebody to read; otherwise there is room in the ring now. */
  #isHeld(ring: Ring, bytes: number): boolean {
    while (ring.cost > 0 && ring.cost + bytes + BLOCK_COST > STREAM_BYTES) {
      const [oldest] = ring.blocks;
      this.cutIdle();
      if (oldest !== undefined && this.#isNeeded(ring, oldest)) return true;
      this.#room.drop(ring);
    }
    return false;
  }

  #isNeeded(ring: Ring, { offset, length }: Block): boolean {
    if (this.#isAwaitingReader) return true;
    return [...this.#readers].some(({ positions }) => (positions.get(ring)?.offset ?? 0) < offset + length);
  }

  /** Lets go of readers that were waited for in vain. They are told when they come back. */
  cutIdle(): void {
    const nowMs = performance.now();
    for (const reader of this.#readers) {
      if (nowMs - reader.givenAtMs < this.#patienceMs) continue;
      reader.isCut = true;
      this.#readers.delete(reader);
    }
  }

  #awaitNoReader(): void {
    this.#isAwaitingReader = false;
    this.#changed.ring();
  }
}

/** A buffer of its own: the piece may be a small part of a large one. */
function blockFor(data: Buffer, isSameStream: boolean): Buffer {
  const least = isSameStream ? SHARED_BLOCK_BYTES : SMALL_BLOCK_BYTES;
  return Buffer.allocUnsafeSlow(Math.max(data.length, least));
}

function costOf(bytes: Buffer): number {
  return bytes.length + BLOCK_COST;
}

function tooSlow(patienceMs: number): IsolationError {
  return new IsolationError("READER_TOO_SLOW", `nothing was read for ${patienceMs / 1000} s while the process waited`, {
    hint: "attach again: the process goes on, and its last output is kept",
  });
}
