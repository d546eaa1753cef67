import { Errno, syscalls } from "@agentfense/fuse";
import { bytesOf } from "../filesystem/names.ts";
import type { DeltaStamp } from "../filesystem/settlement.ts";
import { stampOf } from "../filesystem/settlement.ts";
import { copyData } from "../filesystem/transfer.ts";
import { copyUserXattrs } from "../filesystem/xattrs.ts";
import { type EntryHandle, sha256Of } from "./comparison.ts";
import { hasChanged, openDeltaFile } from "./destination.ts";
import { ContentSettler } from "./durability.ts";

const { Open, Stat } = syscalls;

/** A file that changes while it is copied is copied again, so often. */
const ATTEMPTS = 3;

/** A copy of a file of the delta, by its name in the staging directory. */
export interface StagedFile {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
  readonly mode: number;
  /** Of the file it is a copy of. */
  readonly stamp: DeltaStamp;
}

/** Copies files of a delta that may be in use to a directory of its own, under numbers. */
export class StagingArea implements Disposable {
  readonly #directory: number;
  readonly #signal: AbortSignal | undefined;
  readonly #settler = new ContentSettler();
  #bytesLeft: number;
  #next = 0;

  constructor(path: string, options: { maxBytes: number; signal: AbortSignal | undefined }) {
    this.#directory = syscalls.open(bytesOf(path), Open.RDONLY | Open.DIRECTORY | Open.NOFOLLOW);
    if (this.#directory < 0) throw new Error("the staging directory cannot be opened");
    this.#bytesLeft = options.maxBytes;
    this.#signal = options.signal;
  }

  /** The copy, or an errno: EFBIG when there is no room for it, EBUSY when it kept changing. */
  async copy(source: EntryHandle): Promise<StagedFile | number> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const copied = await this.#copyOnce(source);
      if (copied !== Errno.ESTALE) return copied;
    }
    return Errno.EBUSY;
  }

  /** What was copied is on the disk. */
  settle(): void {
    this.#settler.settle(this.#directory);
  }

  [Symbol.dispose](): void {
    syscalls.close(this.#directory);
  }

  async #copyOnce(source: EntryHandle): Promise<StagedFile | number> {
    const before = new Stat();
    const from = openDeltaFile(source, before);
    if (from < 0) return -from;
    const name = String(this.#next++);
    let to = -1;
    let kept = false;
    try {
      if (before.size > this.#bytesLeft) return Errno.EFBIG;
      to = syscalls.openat(this.#directory, name, Open.RDWR | Open.CREAT | Open.EXCL, 0o600);
      if (to < 0) return -to;
      let code = await copyData(from, to, before.size, this.#signal);
      if (code < 0) return -code;
      // Of the copy: it is the copy that must be what the hash says.
      const sha256 = await sha256Of(to, this.#signal);
      if (sha256 === undefined) return Errno.EIO;
      if (hasChanged(from, before)) return Errno.ESTALE;
      copyUserXattrs(from, to);
      code = syscalls.utimensat(to, "", before.mtime, before.mtimeNs, before.mtime, before.mtimeNs);
      if (code < 0) return -code;
      this.#settler.finished(to);
      this.#bytesLeft -= before.size;
      kept = true;
      return { name, size: before.size, sha256, mode: before.mode, stamp: stampOf(before) };
    } finally {
      syscalls.close(from);
      if (to >= 0) syscalls.close(to);
      if (!kept && to >= 0) syscalls.unlinkat(this.#directory, name);
    }
  }
}
