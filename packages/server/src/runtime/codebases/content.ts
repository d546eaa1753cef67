import { RuntimeError } from "../errors.ts";
import type { CodebaseMetadata, EntryRecord } from "../store/store.ts";
import { shown } from "./paths.ts";
import type { Staging } from "./staging.ts";
import type { PathChange, StagedCopy } from "./wanted.ts";

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
