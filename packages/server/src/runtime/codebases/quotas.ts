import { RuntimeError } from "../runtime-error.ts";
import type { Growth } from "../store/growth.ts";
import type { CodebaseMetadata } from "../store/store.ts";
import { KeyedTurns } from "../waiting.ts";
import { parentOf, shown } from "./paths.ts";

/** What may be stored; 0 is no limit. */
export const NO_LIMITS = {
  maxFileSize: 0,
  /** Everything that one upload, batch or archive sends. */
  maxUploadSize: 0,
  /** The most for all codebases of an owner together. What old versions keep does not count: the retention bounds that. */
  maxBytesPerOwner: 0,
  /** Files and symbolic links; and as many directories. */
  maxFilesPerOwner: 0,
  maxCodebasesPerOwner: 0,
};

export type CodebaseLimits = Readonly<typeof NO_LIMITS>;

/**
 * What owners may have. What is about to be stored counts as if it were, so that two uploads at once do not exceed it; whoever
 * has no room only because of that waits until it is known: it may be counted twice while it is being stored.
 */
export class Quotas {
  readonly #limits: CodebaseLimits;
  readonly #store: Pick<CodebaseMetadata, "ownerUsage">;
  readonly #turns = new KeyedTurns();
  readonly #promised = new Map<string, Growth>();
  /** Resolved when a promise is kept or taken back. */
  readonly #settling = new Map<string, PromiseWithResolvers<void>>();
  readonly #arriving = new Map<string, number>();

  constructor(limits: CodebaseLimits, store: Pick<CodebaseMetadata, "ownerUsage">) {
    this.#limits = limits;
    this.#store = store;
  }

  /** Refuses what would exceed the owner's limits; else does it. What makes nothing grow is never refused. */
  async admit<Result>(ownerId: string, asked: Growth, store: () => Promise<Result>): Promise<Result> {
    // Room that is about to become free is not given away: what frees it may fail.
    const growth = mapGrowth((what) => Math.max(0, asked[what]));
    for (;;) {
      const settling = await this.#turns.take(ownerId, async () => {
        const usage = await this.#store.ownerUsage(ownerId);
        const promised = this.#promised.get(ownerId) ?? NOTHING;
        if (this.#problem(growth, usage, promised) === undefined) {
          this.#promise(ownerId, growth);
          return undefined;
        }
        const problem = this.#problem(growth, usage, NOTHING);
        if (problem !== undefined) throw problem;
        return { promise: this.#settlingOf(ownerId).promise };
      });
      if (settling === undefined) break;
      await settling.promise;
    }
    try {
      return await store();
    } finally {
      // Under the lock, so that nobody has seen the usage before and sees the promise gone.
      await this.#turns.take(ownerId, async () => {
        this.#promise(
          ownerId,
          mapGrowth((what) => -growth[what]),
        );
        this.#settlingOf(ownerId).resolve();
        this.#settling.delete(ownerId);
      });
    }
  }

  /** Why there is no room, beside what the owner has and what was promised to others. */
  #problem(growth: Growth, has: Growth, promised: Growth): RuntimeError | undefined {
    const exceeded = PARTS.find(
      (what) => growth[what] > 0 && exceeds(has[what] + promised[what] + growth[what], this.#limits[LIMIT_OF[what]]),
    );
    return exceeded && tooMuch(exceeded, this.#limits);
  }

  #settlingOf(ownerId: string): PromiseWithResolvers<void> {
    const settling = this.#settling.get(ownerId) ?? Promise.withResolvers<void>();
    this.#settling.set(ownerId, settling);
    return settling;
  }

  /** One more codebase of the owner, if that is allowed; one at a time. */
  admitCodebase<Result>(ownerId: string, create: () => Promise<Result>): Promise<Result> {
    return this.#turns.take(ownerId, async () => {
      const { maxCodebasesPerOwner } = this.#limits;
      const { codebases } = await this.#store.ownerUsage(ownerId);
      if (exceeds(codebases + 1, maxCodebasesPerOwner)) {
        throw tooMany("max_codebases_per_owner", maxCodebasesPerOwner, "an owner may have", "codebases");
      }
      return await create();
    });
  }

  /** An archive as it arrives, refused when it is too long: what it has besides content is sent too. */
  async *bounded(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of archive) {
      bytes += chunk.length;
      checkUpload(bytes, this.#limits);
      yield chunk;
    }
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
    const sum = mapGrowth((what) => promised[what] + growth[what]);
    if (PARTS.every((what) => sum[what] === 0)) this.#promised.delete(ownerId);
    else this.#promised.set(ownerId, sum);
  }
}

const PARTS = ["bytes", "files", "directories"] as const;
const LIMIT_OF = { bytes: "maxBytesPerOwner", files: "maxFilesPerOwner", directories: "maxFilesPerOwner" } as const;
const NOTHING = mapGrowth(() => 0);

function mapGrowth(part: (what: keyof Growth) => number): Growth {
  return { bytes: part("bytes"), files: part("files"), directories: part("directories") };
}

/** The sizes of one upload: that of its files, and what the owner has under way altogether. */
export class UploadMeter implements Disposable {
  readonly #limits: CodebaseLimits;
  readonly #count: (bytes: number) => number;
  #file = 0;
  #files = 0;
  #entries = 0;
  /** Those that entries name and those on the way to them. */
  readonly #directories = new Set<string>();
  bytes = 0;

  constructor(limits: CodebaseLimits, count: (bytes: number) => number) {
    this.#limits = limits;
    this.#count = count;
  }

  /** So much is announced to come altogether. */
  announce(bytes: number): void {
    checkUpload(bytes, this.#limits);
  }

  /** Another entry; its size, where it is announced. */
  begin(path: string, kind: "file" | "symlink" | "directory" | "absent", size: number): void {
    const { maxFilesPerOwner, maxFileSize } = this.#limits;
    this.#file = 0;
    if (exceeds(size, maxFileSize)) throw tooLarge(path, maxFileSize);
    if (kind === "file" || kind === "symlink") this.#files += 1;
    this.#entries += 1;
    // Absences cost memory until the end too.
    if (exceeds(this.#files, maxFilesPerOwner) || exceeds(this.#entries, maxFilesPerOwner * 2)) {
      throw tooMuch("files", this.#limits);
    }
    if (maxFilesPerOwner === 0 || kind === "absent") return;
    let directory = kind === "directory" ? path : parentOf(path);
    for (; directory !== "" && !this.#directories.has(directory); directory = parentOf(directory)) {
      this.#directories.add(directory);
    }
    if (exceeds(this.#directories.size, maxFilesPerOwner)) throw tooMuch("directories", this.#limits);
  }

  add(path: string, bytes: number): void {
    const { maxBytesPerOwner, maxFileSize } = this.#limits;
    this.#file += bytes;
    this.bytes += bytes;
    const arriving = this.#count(bytes);
    if (exceeds(this.#file, maxFileSize)) throw tooLarge(path, maxFileSize);
    checkUpload(this.bytes, this.#limits);
    if (exceeds(arriving, maxBytesPerOwner)) throw tooMuch("bytes", this.#limits);
  }

  [Symbol.dispose](): void {
    this.#count(-this.bytes);
    this.bytes = 0;
  }
}

function exceeds(value: number, limit: number): boolean {
  return limit > 0 && value > limit;
}

function checkUpload(bytes: number, { maxUploadSize }: CodebaseLimits): void {
  if (!exceeds(bytes, maxUploadSize)) return;
  throw new RuntimeError("LIMIT_EXCEEDED", `an upload may have ${maxUploadSize} bytes at most`, {
    details: { limit: "max_upload_size", value: String(maxUploadSize) },
    hint: "send it in several uploads",
  });
}

function tooMuch(what: keyof Growth, limits: CodebaseLimits): RuntimeError {
  const name = what === "bytes" ? "max_bytes_per_owner" : "max_files_per_owner";
  return tooMany(name, limits[LIMIT_OF[what]], "all codebases of an owner may have", what);
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
