import { RuntimeError } from "../errors.ts";
import type { CodebaseMetadata } from "../store/store.ts";
import { KeyedLocks } from "./lock.ts";
import { shown } from "./paths.ts";

/** 0 is no limit. */
export interface CodebaseLimits {
  readonly maxFileSize: number;
  /** Of all codebases of an owner together; content of old versions does not count. */
  readonly maxBytesPerOwner: number;
  /** Files and symbolic links. */
  readonly maxFilesPerOwner: number;
  readonly maxCodebasesPerOwner: number;
}

export interface Growth {
  readonly bytes: number;
  readonly files: number;
}

/** What owners may have. What is about to be stored counts as if it were, so that two uploads at once do not exceed it. */
export class Quotas {
  readonly #limits: CodebaseLimits;
  readonly #store: Pick<CodebaseMetadata, "ownerUsage">;
  readonly #locks = new KeyedLocks();
  readonly #promised = new Map<string, Growth>();
  readonly #arriving = new Map<string, number>();

  constructor(limits: CodebaseLimits, store: Pick<CodebaseMetadata, "ownerUsage">) {
    this.#limits = limits;
    this.#store = store;
  }

  /** Refuses what would exceed the owner's limits; else does it. What makes nothing grow is never refused. */
  async admit<Result>(ownerId: string, growth: Growth, store: () => Promise<Result>): Promise<Result> {
    await this.#locks.run(ownerId, async () => {
      const usage = await this.#store.ownerUsage(ownerId);
      const promised = this.#promised.get(ownerId) ?? NOTHING;
      const { maxBytesPerOwner, maxFilesPerOwner } = this.#limits;
      if (growth.bytes > 0 && exceeds(usage.size + promised.bytes + growth.bytes, maxBytesPerOwner)) {
        throw tooMany("max_bytes_per_owner", maxBytesPerOwner, `all codebases of an owner may have`, "bytes");
      }
      if (growth.files > 0 && exceeds(usage.fileCount + promised.files + growth.files, maxFilesPerOwner)) {
        throw tooMany("max_files_per_owner", maxFilesPerOwner, `all codebases of an owner may have`, "files");
      }
      this.#promise(ownerId, growth);
    });
    try {
      return await store();
    } finally {
      // Under the lock, so that nobody has seen the usage before and sees the promise gone.
      await this.#locks.run(ownerId, async () =>
        this.#promise(ownerId, { bytes: -growth.bytes, files: -growth.files }),
      );
    }
  }

  /** One more codebase of the owner, if that is allowed; one at a time. */
  admitCodebase<Result>(ownerId: string, create: () => Promise<Result>): Promise<Result> {
    return this.#locks.run(ownerId, async () => {
      const { maxCodebasesPerOwner } = this.#limits;
      const { codebases } = await this.#store.ownerUsage(ownerId);
      if (exceeds(codebases + 1, maxCodebasesPerOwner)) {
        throw tooMany("max_codebases_per_owner", maxCodebasesPerOwner, "an owner may have", "codebases");
      }
      return await create();
    });
  }

  /** Counts an upload as it arrives. Dispose of it when the content is stored, or not wanted. */
  meter(ownerId: string): UploadMeter {
    return new UploadMeter(this.#limits, (bytes) => {
      const arriving = (this.#arriving.get(ownerId) ?? 0) + bytes;
      if (arriving <= 0) this.#arriving.delete(ownerId);
      else this.#arriving.set(ownerId, arriving);
      return arriving;
    });
  }

  #promise(ownerId: string, growth: Growth): void {
    const promised = this.#promised.get(ownerId) ?? NOTHING;
    const bytes = promised.bytes + growth.bytes;
    const files = promised.files + growth.files;
    if (bytes === 0 && files === 0) this.#promised.delete(ownerId);
    else this.#promised.set(ownerId, { bytes, files });
  }
}

const NOTHING: Growth = { bytes: 0, files: 0 };

/** The sizes of one upload: that of its files, and what the owner has under way altogether. */
export class UploadMeter implements Disposable {
  readonly #limits: CodebaseLimits;
  readonly #count: (bytes: number) => number;
  #file = 0;
  #files = 0;
  #entries = 0;
  bytes = 0;

  constructor(limits: CodebaseLimits, count: (bytes: number) => number) {
    this.#limits = limits;
    this.#count = count;
  }

  /** Another entry; its size, where it is announced. */
  begin(path: string, kind: "file" | "symlink" | "directory" | "absent", size: number): void {
    const { maxFilesPerOwner, maxFileSize } = this.#limits;
    this.#file = 0;
    if (exceeds(size, maxFileSize)) throw tooLarge(path, maxFileSize);
    if (kind === "file" || kind === "symlink") this.#files += 1;
    this.#entries += 1;
    // Directories and absences cost memory until the end too.
    if (exceeds(this.#files, maxFilesPerOwner) || exceeds(this.#entries, maxFilesPerOwner * 2)) {
      throw tooMany("max_files_per_owner", maxFilesPerOwner, "all codebases of an owner may have", "files");
    }
  }

  add(path: string, bytes: number): void {
    const { maxBytesPerOwner, maxFileSize } = this.#limits;
    this.#file += bytes;
    this.bytes += bytes;
    const arriving = this.#count(bytes);
    if (exceeds(this.#file, maxFileSize)) throw tooLarge(path, maxFileSize);
    if (exceeds(arriving, maxBytesPerOwner)) {
      throw tooMany("max_bytes_per_owner", maxBytesPerOwner, "all codebases of an owner may have", "bytes");
    }
  }

  [Symbol.dispose](): void {
    this.#count(-this.bytes);
    this.bytes = 0;
  }
}

function exceeds(value: number, limit: number): boolean {
  return limit > 0 && value > limit;
}

function tooLarge(path: string, limit: number): RuntimeError {
  return new RuntimeError("LIMIT_EXCEEDED", `${shown(path)} is too large: a file may have ${limit} bytes at most`, {
    details: { limit: "max_file_size", value: String(limit) },
  });
}

function tooMany(name: string, limit: number, who: string, what: string): RuntimeError {
  return new RuntimeError("LIMIT_EXCEEDED", `${who} ${limit} ${what} at most`, {
    details: { limit: name, value: String(limit) },
    hint: "remove what is no longer needed, or ask the operator for more",
  });
}
