import { hash } from "node:crypto";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { CodebasePlace } from "../codebase/layout.ts";
import type { ContentPiece, FromReceiver, ReceivedContent, ToReceiver } from "../codebase/receiving.ts";
import { Bell } from "../waiting.ts";
import type { Jobs } from "./thread.ts";

const GROUP_SIZE = 1 << 20;
/** Most uploads are one small file: a buffer grows with what comes. */
const FIRST_SIZE = 1 << 14;
/** An upload of so little, in so few files, is hashed here and goes as one job: that is less work than a channel. */
const SMALL_SIZE = 1 << 16;
const SMALL_FILES = 16;
/** A group with very many small files is sent before it is full. */
const GROUP_PIECES = 1024;
/** So many groups may be on their way to the disk. */
const GROUPS_UNDERWAY = 4;

/**
 * The sending end of an upload: files one after the other, each begun and then written. Content travels in groups of about
 * a MiB, so that ten thousand small files do not cost ten thousand trips between threads.
 */
export class ContentSender implements AsyncDisposable {
  readonly #jobs: Jobs;
  readonly #target: CodebasePlace & { readonly upload: string };
  #settled: Promise<void> | undefined;
  #port: MessagePort | undefined;
  readonly #received = Promise.withResolvers<readonly ReceivedContent[]>();
  #failure: Error | undefined;
  #buffer = new Uint8Array(0);
  /** The size of the next buffer: as large as the last one became. */
  #size = FIRST_SIZE;
  #filled = 0;
  #pieces: ContentPiece[] = [];
  #underway = 0;
  readonly #room = new Bell();
  #files = 0;
  #current: { readonly index: number; first: boolean } | undefined;

  constructor(jobs: Jobs, place: CodebasePlace, upload: string) {
    this.#jobs = jobs;
    this.#target = { ...place, upload };
    this.#received.promise.catch(() => {}); // who cares awaits it
  }

  /** After the end: resolves when all that was written is on the disk. */
  async settled(): Promise<void> {
    await this.#settled;
  }

  /** Begins a file, and ends the one before; its index is its name in staging. */
  async begin(): Promise<number> {
    await this.#endFile();
    const index = this.#files++;
    this.#current = { index, first: true };
    return index;
  }

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; ) {
      const room = GROUP_SIZE - this.#filled;
      const part = data.subarray(at, at + room);
      this.#makeRoom(part.length);
      this.#buffer.set(part, this.#filled);
      this.#add(part.length, false);
      at += part.length;
      if (this.#filled === GROUP_SIZE) await this.#send();
    }
  }

  /** Everything has been sent: the sizes and hashes of what came, by index. */
  async end(): Promise<readonly ReceivedContent[]> {
    await this.#endFile();
    if (this.#files === 0) return [];
    if (this.#port === undefined && this.#filled <= SMALL_SIZE && this.#files <= SMALL_FILES) return this.#sendAtOnce();
    if (this.#pieces.length > 0) await this.#send();
    this.#post({ kind: "end" }, []);
    return await this.#received.promise;
  }

  /** Without an end before, what was written is abandoned. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#port?.close();
    await this.#settled?.catch(() => {});
  }

  #sendAtOnce(): readonly ReceivedContent[] {
    const [content, pieces] = [this.#buffer, this.#pieces];
    const received = pieces.map(({ offset, length }): ReceivedContent => {
      return { size: length, sha256: hash("sha256", content.subarray(offset, offset + length), "hex") };
    });
    const { buffer } = content;
    this.#begin(this.#jobs.run("storeContent", { ...this.#target, buffer, pieces }, { transfer: [buffer] }));
    return received;
  }

  #openChannel(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (message: FromReceiver) => {
      if (message !== "taken") return this.#received.resolve(message);
      this.#underway -= 1;
      this.#room.ring();
    });
    this.#begin(this.#jobs.run("receiveContent", { ...this.#target, port: port2 }, { transfer: [port2] }));
    return port1;
  }

  #begin(job: Promise<void>): void {
    this.#settled = job;
    job.catch((error: Error) => {
      this.#failure = error;
      this.#received.reject(error);
      this.#room.ring();
    });
  }

  async #endFile(): Promise<void> {
    if (this.#current === undefined) return;
    this.#add(0, true);
    this.#current = undefined;
    if (this.#pieces.length >= GROUP_PIECES) await this.#send();
  }

  // Consecutive stretches of one file in one group are one piece.
  #add(length: number, last: boolean): void {
    const { index, first } = this.#current!;
    const before = this.#pieces.at(-1);
    if (before?.index === index) {
      this.#pieces[this.#pieces.length - 1] = { ...before, length: before.length + length, last };
    } else {
      this.#pieces.push({ index, offset: this.#filled, length, first, last });
      this.#current!.first = false;
    }
    this.#filled += length;
  }

  async #send(): Promise<void> {
    while (this.#underway >= GROUPS_UNDERWAY && this.#failure === undefined) {
      await this.#room.wait();
    }
    if (this.#failure !== undefined) throw this.#failure;
    const { buffer } = this.#buffer;
    this.#buffer = new Uint8Array(0);
    this.#underway += 1;
    this.#post({ kind: "group", buffer, pieces: this.#pieces }, [buffer]);
    this.#filled = 0;
    this.#pieces = [];
  }

  #makeRoom(length: number): void {
    const needed = this.#filled + length;
    if (needed <= this.#buffer.length) return;
    while (this.#size < needed) this.#size = Math.min(GROUP_SIZE, this.#size * 4);
    const larger = new Uint8Array(this.#size);
    larger.set(this.#buffer);
    this.#buffer = larger;
  }

  #post(message: ToReceiver, transfer: ArrayBuffer[]): void {
    this.#port ??= this.#openChannel();
    this.#port.postMessage(message, transfer);
  }
}
