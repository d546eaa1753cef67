import type { Readable } from "node:stream";
import type { ExecEvent } from "../exec/api.ts";
import { OutputBuffer } from "../exec/output.ts";
import { Bell, settledWithin } from "../waiting.ts";

/** Where the output of the running command goes. */
export interface Sink {
  /** False asks for no more until the outlet is resumed. */
  write(data: Buffer): boolean;
  /** Output was lost before it came here. */
  lost(): void;
}

/** Kept of what background jobs print between two commands; the rest is dropped, so that they never block. */
const BACKLOG_BYTES = 256 * 1024;

/** Owed bytes that do not come for so long do not exist. */
const PATIENCE_MS = 2_000;

/**
 * One output stream of the shell, cut into the outputs of its commands. It is always read: between commands what arrives
 * is kept for the next one, up to a limit.
 */
export class Outlet {
  readonly #stream: Readable;
  readonly #backlog = new OutputBuffer(BACKLOG_BYTES);
  #sink: Sink | undefined;
  #ended = false;
  #frozen = false;
  /** The end of the current command is so many bytes away, when it is known. */
  #owed: number | undefined;
  #settled: (() => void) | undefined;

  constructor(stream: Readable) {
    this.#stream = stream;
    stream.on("data", (data: Buffer) => this.#receive(data));
    stream.on("error", () => this.#end());
    stream.on("close", () => this.#end());
    stream.on("end", () => this.#end());
  }

  /** From now on the output belongs to this sink, beginning with what was kept. */
  open(sink: Sink): void {
    this.#sink = sink;
    const { data, truncated } = this.#backlog.take();
    if (truncated) sink.lost();
    if (data.length > 0) this.#write(data);
  }

  /** Nothing is handed on until `finish`: what the stream still owes can be counted. */
  freeze(): void {
    this.#frozen = true;
    this.#stream.pause();
  }

  /** The sink that asked for a pause takes more. */
  resume(): void {
    if (!this.#frozen) this.#stream.resume();
  }

  /** The sink gets so many more bytes, or what comes until the stream ends; what follows belongs to the next command. */
  async finish(owedBytes: number): Promise<void> {
    this.#frozen = false;
    if (owedBytes > 0 && !this.#ended) {
      const settled = new Promise<void>((resolve) => {
        this.#settled = resolve;
      });
      this.#owed = owedBytes;
      this.#stream.resume();
      await this.#patiently(settled);
    }
    this.#close();
    this.#stream.resume();
  }

  async #patiently(settled: Promise<void>): Promise<void> {
    for (let before = this.#owed; this.#owed !== undefined; before = this.#owed) {
      await settledWithin(PATIENCE_MS, settled);
      if (this.#owed === before) return;
    }
  }

  #receive(data: Buffer): void {
    if (this.#owed === undefined || data.length < this.#owed) {
      if (this.#owed !== undefined) this.#owed -= data.length;
      this.#write(data);
      return;
    }
    const end = this.#owed;
    this.#write(data.subarray(0, end));
    this.#close();
    if (data.length > end) this.#write(data.subarray(end));
  }

  #write(data: Buffer): void {
    if (this.#sink === undefined) this.#backlog.write(data);
    // Once the command has ended, what it owes is no more than its pipe holds: that much is taken at once.
    else if (!this.#sink.write(data) && this.#owed === undefined) this.#stream.pause();
  }

  #close(): void {
    this.#sink = undefined;
    this.#owed = undefined;
    this.#settled?.();
    this.#settled = undefined;
  }

  #end(): void {
    this.#ended = true;
    if (this.#owed !== undefined) this.#close();
  }
}

/** Waiting events may weigh so much before the command has to wait at a full pipe. */
const HIGH_WATER_BYTES = 256 * 1024;
/** What an event costs besides its data: tiny ones count too. */
const EVENT_BYTES = 128;

/** What one command prints and says, on its way to a reader who may be slow. */
export class EventQueue<Event extends { readonly kind: string } = ExecEvent> {
  readonly #events: { readonly event: Event; readonly bytes: number }[] = [];
  readonly #onDrained: () => void;
  #weight = 0;
  #full = false;
  #discarding = false;
  #lost = false;
  #end: { readonly error?: unknown } | undefined;
  readonly #news = new Bell();

  constructor(onDrained: () => void) {
    this.#onDrained = onDrained;
  }

  get truncated(): boolean {
    return this.#lost;
  }

  lost(): void {
    this.#lost = true;
  }

  finish(last: Event): void {
    this.#events.push({ event: last, bytes: 0 });
    this.#end = {};
    this.#news.ring();
  }

  fail(error: unknown): void {
    this.#end = { error };
    this.#news.ring();
  }

  /** The reader is gone: what comes is dropped. */
  discard(): void {
    this.#discarding = true;
    this.#events.length = 0;
    this.#onDrained();
  }

  async *read(): AsyncGenerator<Event, void, undefined> {
    while (true) {
      for (let first = this.#events.shift(); first !== undefined; first = this.#events.shift()) {
        this.#release(first.bytes);
        yield first.event;
      }
      if (this.#end !== undefined) break;
      await this.#news.wait();
    }
    if ("error" in this.#end) throw this.#end.error;
  }

  /** An event that holds so many bytes. False asks for no more until the reader has taken some. */
  push(event: Event, dataBytes: number): boolean {
    if (this.#discarding) return true;
    const bytes = EVENT_BYTES + dataBytes;
    this.#events.push({ event, bytes });
    this.#weight += bytes;
    this.#full = this.#weight >= HIGH_WATER_BYTES;
    this.#news.ring();
    return !this.#full;
  }

  #release(bytes: number): void {
    this.#weight -= bytes;
    if (!this.#full || this.#weight >= HIGH_WATER_BYTES / 2) return;
    this.#full = false;
    this.#onDrained();
  }
}
