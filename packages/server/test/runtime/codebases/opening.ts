import { join } from "node:path";
import { JobThread } from "../../../src/isolation/jobs/thread.ts";
import type { BatchPiece, CodebaseLayers, Codebases, ManifestEntry } from "../../../src/runtime/codebases/api.ts";
import { openCodebases } from "../../../src/runtime/codebases/open-codebases.ts";
import type { CodebasesOptions } from "../../../src/runtime/codebases/parts.ts";
import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";

export type Store = Codebases & CodebaseLayers & AsyncDisposable;

export interface OpenedPlace extends AsyncDisposable {
  readonly codebases: Store;
  readonly metadata: MetadataStore;
}

/** Opens the codebases below a directory: a real database, real threads, the real disk. */
export async function openPlace(root: string, options: Partial<CodebasesOptions> = {}): Promise<OpenedPlace> {
  await using undo = new AsyncDisposableStack();
  const metadata = undo.use(await openSqliteStore({ path: join(root, "metadata.db") }));
  const jobs = options.jobs ?? undo.use(new JobThread({ threads: 2 }));
  const directory = join(root, "codebases");
  const codebases = undo.use(await openCodebases({ store: metadata, directory, ...options, jobs }));
  const parts = undo.move();
  return { codebases, metadata, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

export async function* chunks(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === "string" ? Buffer.from(part) : part;
}

export async function collected(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of content) parts.push(part);
  return Buffer.concat(parts);
}

/** A file entry whose content follows, or whose hash is all that is sent. */
export function file(path: string, options: { mode?: number; size?: number; sha256?: string } = {}): ManifestEntry {
  return { kind: "file", path, mode: options.mode ?? 0, size: options.size ?? 0, sha256: options.sha256 ?? "" };
}

/** A piece, or a path and its content. */
export type Piece = BatchPiece | readonly [string, string];

export async function* pieces(...given: readonly Piece[]): AsyncGenerator<BatchPiece> {
  for (const one of given) {
    if (!Array.isArray(one)) yield one as BatchPiece;
    else yield { entry: file(one[0] as string), data: Buffer.from(one[1] as string) };
  }
}
