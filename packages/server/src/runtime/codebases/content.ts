import { randomBytes } from "node:crypto";
import type { ContentSource } from "../../isolation/codebase/copying.ts";
import type { CodebaseDisk } from "../../isolation/jobs/codebase-disk.ts";
import type { ContentSender } from "../../isolation/jobs/sending.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { CodebaseMetadata, EntryRecord } from "../store/store.ts";
import type { FileEntry, ManifestEntry } from "./api.ts";
import { shown } from "./paths.ts";

const PATHS_NAMED = 20;
const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** The content of an empty file is no secret: nobody has to send it. */
export function isEmptyContent(sha256: string): boolean {
  return sha256 === EMPTY_SHA256;
}

export function emptyContent(): { readonly size: number; readonly sha256: string } {
  return { size: 0, sha256: EMPTY_SHA256 };
}

/**
 * Stages what the change needs and has not sent: content of old versions, and of files that the codebase has. Gives the
 * staged name of every file that comes to be. Under the codebase's lock, so that what is found stays there.
 */
export async function stageContent(
  store: Pick<CodebaseMetadata, "entriesByHash">,
  codebaseId: string,
  staging: Staging,
  changes: readonly PathChange[],
  signal?: AbortSignal,
): Promise<(change: PathChange) => string> {
  const found = await findContent(store, codebaseId, changes);
  const names = new Map<string, string>();
  const copies: StagedCopy[] = [];
  for (const { path, content } of changes) {
    if (content === undefined) continue;
    if (content.at === "staged") {
      names.set(path, content.name);
      continue;
    }
    const staged = `copy-${copies.length}`;
    const from =
      content.at === "kept"
        ? ({ in: "kept", path: content.keptAs } as const)
        : ({ in: "tree", path: found.get(path)!.path } as const);
    copies.push({ from, staged, share: content.at === "kept" });
    names.set(path, staged);
  }
  await staging.copy(copies, signal);
  return ({ path }) => names.get(path)!;
}

/** A file of the codebase with the content that is wanted, by the path that wants it. */
async function findContent(
  store: Pick<CodebaseMetadata, "entriesByHash">,
  codebaseId: string,
  changes: readonly PathChange[],
): Promise<ReadonlyMap<string, EntryRecord>> {
  const found = new Map<string, EntryRecord>();
  const asking: EntryRecord[] = [];
  for (const { path, before, after, content } of changes) {
    if (content?.at !== "codebase" || after === undefined) continue;
    if (before?.kind === "file" && before.sha256 === after.sha256) found.set(path, before);
    else asking.push(after);
  }
  if (asking.length === 0 && found.size === 0) return found;
  const byHash = await store.entriesByHash(codebaseId, [...new Set(asking.map(({ sha256 }) => sha256))]);
  const missing: string[] = [];
  for (const { path, sha256 } of asking) {
    const entry = byHash.get(sha256);
    if (entry === undefined) missing.push(path);
    else found.set(path, entry);
  }
  if (missing.length > 0) throw contentMissing(missing);
  for (const { path, after } of changes) {
    const entry = found.get(path);
    if (entry !== undefined && entry.size !== after?.size) {
      throw new RuntimeError(
        "UPLOAD_MISMATCH",
        `${shown(path)} is announced with ${after?.size} bytes, its content has ${entry.size}`,
      );
    }
  }
  return found;
}

function contentMissing(paths: readonly string[]): RuntimeError {
  const named = paths.slice(0, PATHS_NAMED).map(shown).join(", ");
  const more = paths.length > PATHS_NAMED ? ` and ${paths.length - PATHS_NAMED} more` : "";
  return new RuntimeError("CONTENT_MISSING", `the server does not have the content of ${named}${more}`, {
    details: { missing: String(paths.length) },
    hint: "send the content of these files",
  });
}

/** Where the content of one change waits. It goes when nothing came of the change. */
export class Staging implements AsyncDisposable {
  readonly upload = randomBytes(12).toString("hex");
  readonly #disk: CodebaseDisk;
  readonly #codebaseId: string;
  #sender: ContentSender | undefined;
  #isUsed = false;
  #isHandedOver = false;

  constructor(disk: CodebaseDisk, codebaseId: string) {
    this.#disk = disk;
    this.#codebaseId = codebaseId;
  }

  send(): ContentSender {
    this.#isUsed = true;
    this.#sender = this.#disk.send(this.#codebaseId, this.upload);
    return this.#sender;
  }

  /** Resolves when what was sent is on the disk. */
  async settled(): Promise<void> {
    await this.#sender?.settled();
  }

  /** A directory of the host's to put files into. */
  makeDirectory(): string {
    this.#isUsed = true;
    return this.#disk.makeStaging(this.#codebaseId, this.upload);
  }

  async copy(copies: readonly StagedCopy[], signal?: AbortSignal): Promise<void> {
    if (copies.length === 0) return;
    this.#isUsed = true;
    await this.#disk.copy(this.#codebaseId, this.upload, copies, signal);
  }

  /** Names of files that are not there as they should be. */
  async inspect(files: readonly { readonly name: string; readonly size: number }[]): Promise<readonly string[]> {
    return await this.#disk.inspectStaged(this.#codebaseId, this.upload, files);
  }

  /** A journal speaks of it now: it lives until that is done. */
  handOver(): void {
    this.#isHandedOver = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender?.[Symbol.asyncDispose]();
    if (!this.#isUsed || this.#isHandedOver) return;
    // What cannot be removed now is removed at the next start.
    await this.#disk.removeStaging(this.#codebaseId, this.upload).catch(() => {});
  }
}

/** Where the content of a file comes from. */
export type Content =
  /** A name in the upload's staging directory. */
  | { readonly at: "staged"; readonly name: string }
  /** What an old version had at this path, to be shared with it. */
  | { readonly at: "kept"; readonly keptAs: string }
  /** The codebase has it somewhere. */
  | { readonly at: "codebase" };

/** What a change wants to be at a path. */
export type Wanted =
  | Exclude<ManifestEntry, FileEntry>
  | (Omit<FileEntry, "mode"> & {
      /** Absent: that of the file it replaces, or 0644. */
      readonly mode?: number;
      readonly content: Content;
      /** Absent: now. */
      readonly modifiedAtMs?: number;
    });

/** One path that changes. */
export interface PathChange {
  readonly path: string;
  readonly before: EntryRecord | undefined;
  readonly after: EntryRecord | undefined;
  /** What a file holds that comes to be. */
  readonly content?: Content;
}

/** Content that the codebase has, to be staged under a name before the change begins. */
export interface StagedCopy {
  readonly from: ContentSource;
  readonly staged: string;
  readonly share: boolean;
}
