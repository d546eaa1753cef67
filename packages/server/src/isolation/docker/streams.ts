import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { Readable } from "node:stream";

export type OutputName = "stdout" | "stderr";

const HEADER_BYTES = 8;
const STDERR = 2;

/**
 * Takes apart what the daemon sends for a process without a terminal: frames of one byte stream number (1 stdout,
 * 2 stderr), three of padding, four of length (big-endian), and the bytes. They are passed on as they come, so that the
 * length of a frame never decides how much memory it takes.
 */
export class Demultiplexer {
  readonly #onBytes: (name: OutputName, bytes: Buffer) => void;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #remaining = 0;

  constructor(onBytes: (name: OutputName, bytes: Buffer) => void) {
    this.#onBytes = onBytes;
  }

  feed(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#remaining > 0) rest = this.#passOn(rest);
      else rest = this.#readHeader(rest);
    }
  }

  #passOn(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#remaining);
    this.#remaining -= part.length;
    this.#onBytes(this.#header[0] === STDERR ? "stderr" : "stdout", part);
    return bytes.subarray(part.length);
  }

  #readHeader(bytes: Buffer): Buffer {
    const copied = bytes.copy(this.#header, this.#headerBytes);
    this.#headerBytes += copied;
    if (this.#headerBytes === HEADER_BYTES) {
      this.#headerBytes = 0;
      this.#remaining = this.#header.readUInt32BE(4);
    }
    return bytes.subarray(copied);
  }
}

const SEPARATOR = 0x1e;
/** No frame of ours is longer; what only looks like the beginning of one is output. */
const LONGEST = 65_536;

export type Piece =
  | { readonly kind: "data"; readonly data: Buffer }
  | { readonly kind: "frame"; readonly text: string };

/** What tells the words of one command's script from anybody else's; see scripts.ts. */
export interface Secrets {
  /** In every frame. */
  readonly mark: string;
  /** In the last one as well. */
  readonly seal: string;
}

export function newSecrets(): Secrets {
  const secret = () => randomBytes(16).toString("hex");
  return { mark: secret(), seal: secret() };
}

/** The first line of a script's stdin. */
export function firstLine({ mark, seal }: Secrets): string {
  return `${mark} ${seal}\n`;
}

/** Finds the frames (see scripts.ts) in one stream; everything else is output and passes at once. */
export class FrameScanner {
  readonly #opening: Buffer;
  #held: Buffer = Buffer.alloc(0);

  constructor(mark: string) {
    this.#opening = Buffer.from(`${String.fromCharCode(SEPARATOR)}${mark} `, "latin1");
  }

  scan(chunk: Buffer): Piece[] {
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = Buffer.alloc(0);
    const pieces: Piece[] = [];
    const data = (bytes: Buffer) => {
      if (bytes.length > 0) pieces.push({ kind: "data", data: bytes });
    };
    for (;;) {
      const begin = rest.indexOf(this.#opening);
      if (begin < 0) {
        const kept = this.#possibleOpening(rest);
        data(rest.subarray(0, rest.length - kept));
        this.#held = Buffer.from(rest.subarray(rest.length - kept));
        return pieces;
      }
      data(rest.subarray(0, begin));
      const text = begin + this.#opening.length;
      const end = rest.indexOf(SEPARATOR, text);
      if (end < 0 && rest.length - begin > LONGEST) {
        data(rest.subarray(begin, text));
        rest = rest.subarray(text);
      } else if (end < 0) {
        this.#held = Buffer.from(rest.subarray(begin));
        return pieces;
      } else {
        pieces.push({ kind: "frame", text: rest.toString("utf8", text, end) });
        rest = rest.subarray(end + 1);
      }
    }
  }

  /** What was held back in the hope of a frame, now that no more will come. */
  rest(): Buffer {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held;
  }

  /** How many bytes at the end could be the beginning of a frame. */
  #possibleOpening(bytes: Buffer): number {
    let at = bytes.indexOf(SEPARATOR, Math.max(0, bytes.length - this.#opening.length + 1));
    while (at >= 0) {
      const length = bytes.length - at;
      if (this.#opening.subarray(0, length).equals(bytes.subarray(at))) return length;
      at = bytes.indexOf(SEPARATOR, at + 1);
    }
    return 0;
  }
}

const HIGH_WATER_BYTES = 65_536;

/**
 * Readable ends that are filled from one connection. The connection is read only while every one of them has room, so a
 * reader that stops also stops the command; one that was destroyed takes no part any more.
 */
export class Outputs {
  readonly #connection: Socket;
  readonly #full = new Set<Readable>();
  readonly #ended = new Set<Readable>();
  /** Bytes to fetch although a reader has no room. */
  #granted = 0;

  constructor(connection: Socket) {
    this.#connection = connection;
  }

  open(): Readable {
    const output = new Readable({
      highWaterMark: HIGH_WATER_BYTES,
      read: () => this.#hasRoom(output),
      destroy: (error, done) => {
        this.#hasRoom(output);
        done(error);
      },
    });
    // Whoever gave up on a stream must not bring the server down with it.
    output.on("error", () => {});
    return output;
  }

  push(output: Readable, data: Buffer): void {
    if (output.destroyed || this.#ended.has(output)) return;
    if (output.push(data)) return;
    if (this.#granted > 0) {
      this.#granted -= data.length;
      return;
    }
    this.#full.add(output);
    this.#connection.pause();
  }

  /** Idempotent; whatever comes for it later is lost. */
  end(output: Readable): void {
    if (this.#ended.has(output)) return;
    this.#ended.add(output);
    this.#full.delete(output);
    if (!output.destroyed) output.push(null);
  }

  /** Fetches so much more, room or not: what a command that was just signalled may have in front of its end. */
  grant(bytes: number): void {
    this.#granted = bytes;
    this.#full.clear();
    this.#connection.resume();
  }

  /** From now on everything is fetched, room or not: for a command that is dead, what is left is bounded. */
  drain(): void {
    this.grant(Number.POSITIVE_INFINITY);
  }

  #hasRoom(output: Readable): void {
    if (this.#full.delete(output) && this.#full.size === 0) this.#connection.resume();
  }
}
