import type { BatchUploadResult } from "@agentfense/protocol/codebase";
import { CommandFailure } from "../command.ts";
import type { Server } from "../remote/server.ts";
import { printable } from "../terminal.ts";
import { batchChunks } from "./batch.ts";
import { ContentChanged } from "./content.ts";
import { hashFiles } from "./hash.ts";
import { inMessages, manifestEntry, type UploadEntry } from "./manifest.ts";
import { Progress } from "./progress.ts";
import { type Walk, type WalkOptions, walk } from "./walk.ts";

export interface UploadOptions extends WalkOptions {
  readonly skipUnreadable: boolean;
}

/** What a directory has for a codebase. */
export interface Selection {
  readonly entries: readonly UploadEntry[];
  readonly bytes: number;
  /** What stays behind and why, each as a sentence. */
  readonly leftOut: readonly string[];
}

/** Walks and hashes. Throws when something cannot be read, unless that is to be left out. */
export async function selectEntries(top: string, options: UploadOptions): Promise<Selection> {
  const found = await walk(top, options);
  const files = found.entries.filter((entry) => entry.kind === "file");
  using progress = new Progress(process.stderr, "reading", sum(files.map(({ size }) => size)));
  const { hashed, unreadable } = await orChanged(hashFiles(top, files, (count) => progress.add(count)));
  const refused = [...found.unreadable, ...unreadable];
  if (refused.length > 0 && !options.skipUnreadable) throw new CommandFailure(describeUnreadable(refused));
  return {
    ...inOrder(found, hashed),
    leftOut: [...refused.map((path) => `${path}: cannot be read`), ...found.unsuitable],
  };
}

/** Sends what the server lacks, and makes one version of it all. */
export async function sendEntries(
  server: Server,
  top: string,
  selection: Selection,
  begin: {
    readonly codebaseId: string;
    readonly replaceAll: boolean;
    readonly message: string;
    readonly baseVersion: bigint;
  },
): Promise<{ readonly result: BatchUploadResult; readonly filesSent: number; readonly bytesSent: number }> {
  const missing = await findMissing(server, begin.codebaseId, selection.entries);
  const bytesSent = sum(
    selection.entries.map((entry) => (entry.kind === "file" && missing.has(entry.path) ? entry.size : 0)),
  );
  using progress = new Progress(process.stderr, "uploading", bytesSent);
  let failure: unknown;
  const chunks = async function* () {
    try {
      yield* batchChunks({ top, begin, entries: selection.entries, missing }, (count) => progress.add(count));
    } catch (error) {
      // The call ends with an error of its own, which knows nothing of this one.
      failure = error;
      throw error;
    }
  };
  try {
    const result = await server.codebases.batchUpload(chunks());
    return { result, filesSent: missing.size, bytesSent };
  } catch (error) {
    return await orChanged(Promise.reject(failure ?? error));
  }
}

async function findMissing(
  server: Server,
  codebaseId: string,
  entries: readonly UploadEntry[],
): Promise<ReadonlySet<string>> {
  const missing = new Set<string>();
  const files = entries.filter((entry) => entry.kind === "file" && entry.size > 0);
  for (const group of inMessages(files)) {
    const answer = await server.codebases.compareManifest({ codebaseId, entries: group.map(manifestEntry) });
    for (const path of answer.missing) missing.add(path);
  }
  return missing;
}

/** The walk's order, with hashes, and without what could not be read. */
function inOrder(found: Walk, hashed: readonly Extract<UploadEntry, { kind: "file" }>[]) {
  const byPath = new Map(hashed.map((file) => [file.path, file]));
  const entries = found.entries.flatMap((entry) => (entry.kind === "file" ? (byPath.get(entry.path) ?? []) : entry));
  return { entries, bytes: sum(hashed.map(({ size }) => size)) };
}

const NAMED = 10;

function describeUnreadable(paths: readonly string[]): string {
  const named = paths.slice(0, NAMED).map((path) => `  ${printable(path)}`);
  const more = paths.length > NAMED ? [`  and ${paths.length - NAMED} more`] : [];
  return ["these cannot be read (leave them out with --skip-unreadable):", ...named, ...more].join("\n");
}

async function orChanged<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof ContentChanged ? new CommandFailure(error.message) : error;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
