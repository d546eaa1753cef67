import type { Readable } from "node:stream";

/** Longer than anything that a kernel of ours says: representations of 2 MiB at most, a dozen of them. */
const LONGEST_FRAME = 32 * 1024 * 1024;
const LONGEST_LINE = 64 * 1024;

export type Frame = { readonly kind: string } & Readonly<Record<string, unknown>>;

/**
 * Reads what a kernel says (see kernel.ts): lines of `SERIAL - PART`, whose last is `SERIAL . PART`. What is no such line, or not about the
 * code that runs, is dropped; of what is, one frame at a time is kept.
 */
export class FrameReader {
  readonly #status: Readable;
  readonly #onFrame: (frame: Frame) => void;
  #serial = "";
  #rest = "";
  #parts: string[] = [];
  #length = 0;

  constructor(status: Readable, onFrame: (frame: Frame) => void) {
    this.#status = status;
    this.#onFrame = onFrame;
    status.setEncoding("latin1");
    status.on("data", (text: string) => this.#read(text));
    status.on("error", () => {}); // the kernel's end tells more
  }

  /** From now on only frames with this serial number count. */
  expect(serial: string): void {
    this.#serial = serial;
    this.#drop();
  }

  pause(): void {
    this.#status.pause();
  }

  resume(): void {
    this.#status.resume();
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(0, LONGEST_LINE);
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    const start = `${this.#serial} `;
    const mark = line[start.length];
    if (!line.startsWith(start) || (mark !== "-" && mark !== ".")) return;
    const part = line.slice(start.length + 2);
    this.#length += part.length;
    if (this.#length <= LONGEST_FRAME) this.#parts.push(part);
    if (mark === "-") return;
    const text = this.#length <= LONGEST_FRAME ? this.#parts.join("") : "";
    this.#drop();
    const frame = parsed(text);
    if (frame !== undefined) this.#onFrame(frame);
  }

  #drop(): void {
    this.#parts = [];
    this.#length = 0;
  }
}

function parsed(text: string): Frame | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("kind" in value)) return undefined;
    return typeof value.kind === "string" ? (value as Frame) : undefined;
  } catch {
    return undefined;
  }
}
