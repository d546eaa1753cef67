import { createHash, type Hash, hash } from "node:crypto";
import { on } from "node:events";
import type { MessagePort } from "node:worker_threads";
import { check, Errno, SystemError, syscalls } from "@agentfense/fuse";
import { ContentSettler } from "../changes/durability.ts";
import { closing } from "../filesystem/descriptors.ts";
import { type CodebasePlace, openOrMakePart, openPart } from "./layout.ts";

const { FileType, Open, Stat } = syscalls;

/** A stretch of a group's buffer that belongs to the file `<index>` of the upload. */
export interface ContentPiece {
  readonly index: number;
  readonly offset: number;
  readonly length: number;
  readonly first: boolean;
  readonly last: boolean;
}

/** What the sender says on the port. */
export type ToReceiver =
  | { readonly kind: "group"; readonly buffer: ArrayBuffer; readonly pieces: readonly ContentPiece[] }
  | { readonly kind: "end" };

/** Each group is answered with "taken", which is what holds a fast sender back; the end with what came, by its index. */
export type FromReceiver = "taken" | readonly ReceivedContent[];

export interface ReceivedContent {
  readonly size: number;
  readonly sha256: string;
}

export interface StoreInput extends CodebasePlace {
  readonly upload: string;
  readonly buffer: ArrayBuffer;
  readonly pieces: readonly ContentPiece[];
}

/** Writes an upload that came as one group to staging, until it is on the disk. */
export function storeContent({ upload, buffer, pieces, ...place }: StoreInput): void {
  const directory = openOrMakePart(place, "staging", upload);
  using _open = closing(directory);
  const settler = new ContentSettler();
  for (const { index, offset, length } of pieces) {
    const fd = createStaged(directory, index);
    using _file = closing(fd);
    writeAll(fd, new Uint8Array(buffer, offset, length));
    settler.finished(fd);
  }
  settler.settle(directory);
}

export interface ReceiveInput extends CodebasePlace {
  readonly upload: string;
  readonly port: MessagePort;
}

/**
 * Writes an upload's content to staging, for as long as the upload lasts, and hashes it on the way. It says what came before all of it is
 * on the disk, which is when it returns. When the sender goes away (the port closes) without an end, what is there is nobody's.
 */
export async function receiveContent({ port, upload, ...place }: ReceiveInput): Promise<void> {
  const directory = openOrMakePart(place, "staging", upload);
  const receiver = new Receiver(directory);
  const say = (words: FromReceiver): void => port.postMessage(words);
  try {
    for await (const [message] of on(port, "message", { close: ["close"] }) as AsyncIterable<[ToReceiver]>) {
      if (message.kind === "end") {
        say(receiver.received);
        receiver.settle();
        return;
      }
      receiver.take(new Uint8Array(message.buffer), message.pieces);
      say("taken");
    }
  } finally {
    receiver.close();
    port.close();
    syscalls.close(directory);
  }
}

class Receiver {
  readonly #directory: number;
  readonly received: ReceivedContent[] = [];
  readonly #settler = new ContentSettler();
  /** The file that was complete last; with it the sender is told first. */
  #newest = -1;
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

  settle(): void {
    this.#finish(-1);
    this.#settler.settle(this.#directory);
  }

  close(): void {
    for (const fd of [this.#open?.fd ?? -1, this.#newest]) if (fd >= 0) syscalls.close(fd);
    this.#open = undefined;
    this.#newest = -1;
  }

  #whole(index: number, data: Uint8Array): void {
    this.#finish(createStaged(this.#directory, index));
    writeAll(this.#newest, data);
    this.received[index] = { size: data.length, sha256: hash("sha256", data, "hex") };
  }

  #part({ index, first, last }: ContentPiece, data: Uint8Array): void {
    if (first) {
      if (this.#open !== undefined) syscalls.close(this.#open.fd);
      this.#open = { fd: createStaged(this.#directory, index), hash: createHash("sha256"), size: 0 };
    }
    const open = this.#open;
    if (open === undefined) throw new Error("content came without a beginning");
    writeAll(open.fd, data);
    open.hash.update(data);
    open.size += data.length;
    if (!last) return;
    this.#open = undefined;
    this.#finish(open.fd);
    this.received[index] = { size: open.size, sha256: open.hash.digest("hex") };
  }

  /** Settles the one that was complete before. */
  #finish(fd: number): void {
    const before = this.#newest;
    this.#newest = fd;
    if (before < 0) return;
    using _open = closing(before);
    this.#settler.finished(before);
  }
}

function createStaged(directory: number, index: number): number {
  const flags = Open.WRONLY | Open.CREAT | Open.EXCL;
  return check("create", syscalls.openat(directory, String(index), flags, 0o600));
}

function writeAll(fd: number, data: Uint8Array): void {
  for (let written = 0; written < data.length; ) {
    const count = check("write", syscalls.write(fd, data.subarray(written), data.length - written));
    if (count === 0) throw new SystemError("write", Errno.EIO);
    written += count;
  }
}

export interface InspectInput extends CodebasePlace {
  readonly upload: string;
  readonly files: readonly { readonly name: string; readonly size: number }[];
}

/** Brings staged files to the disk. Gives the names of those that are not as announced: regular, one name, this size. */
export function inspectStaged({ upload, files, ...place }: InspectInput): readonly string[] {
  const directory = openPart(place, `staging/${upload}`);
  const settler = new ContentSettler();
  const stat = new Stat();
  const isRight = (name: string, size: number): boolean => {
    const fd = syscalls.openat(directory, name, Open.RDONLY | Open.NONBLOCK);
    if (fd < 0) return false;
    using _open = closing(fd);
    const isRegular = syscalls.fstat(fd, stat) === 0 && stat.type === FileType.REGULAR;
    if (!isRegular || stat.size !== size || stat.nlink !== 1) return false;
    settler.finished(fd);
    return true;
  };
  using _open = closing(directory);
  const wrong = files.filter(({ name, size }) => !isRight(name, size)).map(({ name }) => name);
  settler.settle(directory);
  return wrong;
}
