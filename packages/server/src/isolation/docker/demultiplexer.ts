export type OutputName = "stdout" | "stderr";

const HEADER_BYTES = 8;
const STDERR = 2;

/**
 * Takes apart what the engine sends for a process without a terminal: frames of one byte stream number (1 stdout,
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
