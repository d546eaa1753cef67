import { createHash, type Hash, hash } from "node:crypto";
import { on } from "node:events";
import type { MessagePort } from "node:worker_threads";
import { check, Errno, SystemError, syscalls } from "@agentfense/fuse";
import { ContentSettler } from "../changes/durability.ts";
import { type CodebasePlace, openOrMakePart } from "./layout.ts";

const { Open } = syscalls;

/** A stretch of a group's buffer that belongs to the file `<index>` of the upload. */
export interface ContentPiece {
  readonly index: number;
  readonly offset: number;
  readonly length: number;
  readonly first: boolean;
  readonly last: boolean;
}

/** What the sender says on the port; each group is answered with "taken", which is what holds a fast sender back. */
export type ToReceiver =
  | { readonly kind: "group"; readonly buffer: ArrayBuffer; readonly pieces: readonly ContentPiece[] }
  | { readonly kind: "end" };

export interface ReceivedContent {
  readonly size: number;
  readonly sha256: string;
}

export interface ReceiveInput extends CodebasePlace {
  readonly upload: string;
  readonly port: MessagePort;
}

/**
 * Writes an upload's content to staging, for as long as the upload lasts, and hashes it on the way. Gives size and hash of
 * each file by its index. When the sender goes away (the port closes) without an end, what is there is nobody's.
 */
export async function receiveContent({ port, upload, ...place }: ReceiveInput): Promise<readonly ReceivedContent[]> {
  const directory = openOrMakePart(place, "staging", upload);
  const receiver = new Receiver(directory);
  try {
    for await (const [message] of on(port, "message", { close: ["close"] }) as AsyncIterable<[ToReceiver]>) {
      if (message.kind === "end") return receiver.end();
      receiver.take(new Uint8Array(message.buffer), message.pieces);
      port.postMessage("taken");
    }
    return [];
  } finally {
    receiver.close();
    port.close();
    syscalls.close(directory);
  }
}

class Receiver {
  readonly #directory: number;
  readonly #received: ReceivedContent[] = [];
  readonly #settler = new ContentSettler();
  #open: { readonly fd: number; readonly hash: Hash; size: number } | undefined;

  constructor(directory: number) {
    this.#directory = directory;
  }

  take(buffer: Uint8Array, pieces: readonly ContentPiece[]): void {
    for (const piece of pieces) {
      const data = buffer.subarray(piece.offset, piece.offset + piece.length);
      if (piece.first && piece.last) this.#whole(piece.index, data);
      else this.#part(piece, data);
    }
  }

  end(): readonly ReceivedContent[] {
    this.#settler.settle(this.#directory);
    return this.#received;
  }

  close(): void {
    if (this.#open !== undefined) syscalls.close(this.#open.fd);
    this.#open = undefined;
  }

  #whole(index: number, data: Uint8Array): void {
    const fd = this.#create(index);
    try {
      writeAll(fd, data);
      this.#settler.finished(fd);
    } finally {
      syscalls.close(fd);
    }
    this.#received[index] = { size: data.length, sha256: hash("sha256", data, "hex") };
  }

  #part({ index, first, last }: ContentPiece, data: Uint8Array): void {
    if (first) {
      this.close();
      this.#open = { fd: this.#create(index), hash: createHash("sha256"), size: 0 };
    }
    const open = this.#open;
    if (open === undefined) throw new Error("content came without a beginning");
    writeAll(open.fd, data);
    open.hash.update(data);
    open.size += data.length;
    if (!last) return;
    this.#settler.finished(open.fd);
    this.close();
    this.#received[index] = { size: open.size, sha256: open.hash.digest("hex") };
  }

  #create(index: number): number {
    const flags = Open.WRONLY | Open.CREAT | Open.EXCL;
    return check("create", syscalls.openat(this.#directory, String(index), flags, 0o600));
  }
}

function writeAll(fd: number, data: Uint8Array): void {
  for (let written = 0; written < data.length; ) {
    const count = check("write", syscalls.write(fd, data.subarray(written), data.length - written));
    if (count === 0) throw new SystemError("write", Errno.EIO);
    written += count;
  }
}
