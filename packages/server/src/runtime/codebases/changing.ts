import type { Caller } from "../caller.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import type { CodebaseRecord, EntryRecord, VersionOrigin, VersionRecord } from "../store/store.ts";
import { feeding } from "../waiting.ts";
import type { Codebases } from "./api.ts";
import { unpackArchive } from "./archive.ts";
import { mismatch, receiveBatch } from "./batch.ts";
import { stepsFor, stepsForMove } from "./carrying-out.ts";
import type { Turn } from "./changer.ts";
import { Staging, stageContent, type Wanted } from "./content.ts";
import { codebaseNotFound, type Parts, recordEvent, toRuntimeError, visibleCodebase } from "./parts.ts";
import { checkHash, checkMode, checkPath, checkSize, checkTarget, fileNotFound, shown } from "./paths.ts";
import { loadSurroundings, planChanges, planMove } from "./planning.ts";
import { requireVersion } from "./snapshots.ts";

type Methods = "upload" | "link" | "batch" | "uploadArchive" | "deleteFile" | "renameFile" | "rollback";

const LONGEST_MESSAGE = 4096;

interface ChangeRequest {
  readonly origin: VersionOrigin;
  /** Or how to find out, in the codebase's turn. */
  readonly wanted: readonly Wanted[] | (() => Promise<readonly Wanted[]>);
  readonly staging: Staging;
  readonly replaceAll?: boolean;
  readonly baseVersion?: number | undefined;
  readonly message?: string;
  readonly signal?: AbortSignal | undefined;
}

/** What came of it; no version where nothing had to change. */
interface Outcome {
  readonly made: VersionRecord | undefined;
  /** The newest version after it. */
  readonly version: number;
}

/** What clients change. */
export function changingCalls(parts: Parts): Pick<Codebases, Methods> {
  const { store, disk, quotas, changer, log } = parts;

  /** Plans and makes a version of what is wanted; `check` may refuse, seeing what is at a single path now. */
  async function change(
    id: string,
    request: ChangeRequest,
    check?: (entry: EntryRecord | undefined, below: readonly EntryRecord[]) => void,
  ): Promise<Outcome> {
    const { staging, origin, message = "", replaceAll = false, baseVersion, signal } = request;
    const ask = async () => {
      const wanted = typeof request.wanted === "function" ? await request.wanted() : request.wanted;
      return { wanted, surroundings: await loadSurroundings(store, id, wanted, { everything: replaceAll }) };
    };
    const change = async (turn: Turn, { wanted, surroundings }: Awaited<ReturnType<typeof ask>>): Promise<Outcome> => {
      checkBase(turn.record, baseVersion);
      const [only] = wanted;
      if (only !== undefined) check?.(surroundings.entry(only.path), surroundings.below(only.path));
      const { changes } = await planChanges(wanted, surroundings, turn.stamp, { replaceAll, onProblem: "refuse" });
      if (changes.length === 0) return { made: undefined, version: turn.record.version };
      const staged = await stageContent(store, id, staging, changes, signal);
      signal?.throwIfAborted();
      const carried = stepsFor(changes, turn.stamp.version, staged);
      const made = await turn.commit(staging, carried, { origin, message, sandboxId: "" });
      return { made, version: made.version };
    };
    return await changer.turn(id, change, ask);
  }

  // A codebase that is deleted takes its staging directories along.
  async function receiving<Item, Result>(
    id: string,
    source: AsyncIterable<Item>,
    work: (items: AsyncIterable<Item>) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await feeding(source, work, toRuntimeError);
    } catch (error) {
      if (!(error instanceof RuntimeError) || error.code !== "INTERNAL") throw error;
      if ((await store.codebase(id)) === undefined) throw codebaseNotFound();
      log({ level: "error", message: "an upload failed", codebaseId: id, error: error.cause });
      throw error;
    }
  }

  function recordUpload(caller: Caller, record: CodebaseRecord, made: VersionRecord, bytes: number): void {
    const data = { version: made.version, files: made.filesChanged, bytes };
    recordEvent(parts, "files_uploaded", caller, record, data);
  }

  const batch: Codebases["batch"] = async (caller, id, pieces, options = {}) => {
    const message = checkMessage(options.message ?? "");
    const record = await visibleCodebase(parts, caller, id);
    checkBase(record, options.baseVersion);
    await using staging = new Staging(disk, id);
    using meter = quotas.meter(record.ownerId);
    const wanted = await receiving(id, pieces, (items) => receiveBatch(items, staging, meter, options.signal));
    const bytesReceived = meter.bytes;
    const { version, made } = await change(id, {
      origin: "upload",
      wanted,
      staging,
      replaceAll: options.replaceAll ?? false,
      baseVersion: options.baseVersion,
      message,
      signal: options.signal,
    });
    if (made !== undefined) recordUpload(caller, record, made, bytesReceived);
    return { version, filesChanged: made?.filesChanged ?? 0, bytesReceived };
  };

  return {
    async upload(caller, id, path, content, options = {}) {
      const checked = checkPath(path);
      const mode = checkMode(checked, options.mode ?? 0);
      const sha256 = checkHash(checked, options.sha256 ?? "");
      const totalSize = options.totalSize === undefined ? undefined : checkSize(checked, options.totalSize);
      const record = await visibleCodebase(parts, caller, id);
      await using staging = new Staging(disk, id);
      using meter = quotas.meter(record.ownerId);
      meter.begin(checked, "file", totalSize ?? 0);
      meter.announce(totalSize ?? 0);
      const count = (bytes: number): void => {
        options.signal?.throwIfAborted();
        meter.add(checked, bytes);
        if (totalSize !== undefined && meter.bytes > totalSize) {
          throw mismatch(checked, `more than the ${totalSize} bytes arrived that were announced`);
        }
      };
      const received = await receiving(id, content, (items) => receiveFile(items, staging, count));
      if (totalSize !== undefined && received.size !== totalSize) {
        throw mismatch(checked, `${received.size} bytes arrived, ${totalSize} were announced`);
      }
      if (sha256 !== "" && received.sha256 !== sha256) throw mismatch(checked, "the checksum is another");
      const wanted: Wanted = {
        kind: "file",
        path: checked,
        ...(mode === 0 ? {} : { mode }),
        ...received,
        content: { at: "staged", name: "0" },
      };
      const request = { origin: "upload", wanted: [wanted], staging, signal: options.signal } as const;
      const { version, made } = await change(id, request, refuseDirectory);
      if (made !== undefined) recordUpload(caller, record, made, received.size);
      return { ...received, version };
    },

    async link(caller, id, path, target) {
      const checked = checkPath(path);
      const wanted: Wanted = { kind: "symlink", path: checked, target: checkTarget(checked, target) };
      const record = await visibleCodebase(parts, caller, id);
      await using staging = new Staging(disk, id);
      const request = { origin: "upload", wanted: [wanted], staging } as const;
      const { version, made } = await change(id, request, refuseDirectory);
      if (made !== undefined) recordUpload(caller, record, made, 0);
      return { version };
    },

    batch,
    uploadArchive: (caller, id, tar, options) => batch(caller, id, unpackArchive(quotas.bounded(tar)), options),

    async deleteFile(caller, id, path, options = {}) {
      const checked = checkPath(path);
      const record = await visibleCodebase(parts, caller, id);
      await using staging = new Staging(disk, id);
      const wanted: Wanted = { kind: "absent", path: checked };
      const check = (entry: EntryRecord | undefined, below: readonly EntryRecord[]): void => {
        if (entry === undefined) throw fileNotFound(checked);
        if (below.length === 0 || options.recursive === true) return;
        throw new RuntimeError("FILE_WRONG_KIND", `${shown(checked)} is a directory that is not empty`, {
          details: { path: checked },
          hint: "delete it recursively",
        });
      };
      const { version, made } = await change(id, { origin: "delete", wanted: [wanted], staging }, check);
      const filesChanged = made?.filesChanged ?? 0;
      recordEvent(parts, "file_deleted", caller, record, { path: checked, version, files: filesChanged });
      return { version, filesChanged, bytesReceived: 0 };
    },

    async renameFile(caller, id, from, to) {
      const [source, target] = [checkPath(from), checkPath(to)];
      const record = await visibleCodebase(parts, caller, id);
      await using staging = new Staging(disk, id);
      const made = await changer.turn(id, async (turn) => {
        const { changes, moved } = await planMove(store, id, source, target, turn.stamp);
        const carried = stepsForMove(changes, turn.stamp.version, moved);
        return await turn.commit(staging, carried, { origin: "rename", message: "", sandboxId: "" });
      });
      const { version, filesChanged } = made;
      recordEvent(parts, "file_renamed", caller, record, { from: source, to: target, version, files: filesChanged });
      return { version, filesChanged, bytesReceived: 0 };
    },

    async rollback(caller, id, version) {
      const record = await visibleCodebase(parts, caller, id);
      if (!Number.isSafeInteger(version) || version < 1) {
        throw invalid("version must be that of an earlier version");
      }
      await using staging = new Staging(disk, id);
      const current = await store.version(id, version);
      if (current === undefined) throw new RuntimeError("VERSION_NOT_FOUND", `version ${version} not found`);
      // What the version had at every path that was changed since. It stays while we have the turn, if it is still there.
      const load = async (): Promise<readonly Wanted[]> => {
        await requireVersion(store, id, version);
        return (await store.firstChangesAfter(id, version, {})).map(({ path, before, keptAs }): Wanted => {
          if (before === undefined) return { kind: "absent", path };
          const { kind, mode, target, size, sha256, modifiedAtMs } = before;
          if (kind === "directory") return { kind, path, mode };
          if (kind === "symlink") return { kind, path, target };
          return { kind, path, mode, size, sha256, modifiedAtMs, content: { at: "kept", keptAs } };
        });
      };
      const message = `rollback to version ${version}`;
      const outcome = await change(id, { origin: "rollback", wanted: load, staging, message });
      if (outcome.made === undefined) return (await store.version(id, outcome.version)) ?? current;
      const data = { to_version: version, version: outcome.version, files: outcome.made.filesChanged };
      recordEvent(parts, "version_rolled_back", caller, record, data);
      return outcome.made;
    },
  };
}

async function receiveFile(
  content: AsyncIterable<Uint8Array>,
  staging: Staging,
  count: (bytes: number) => void,
): Promise<{ readonly size: number; readonly sha256: string }> {
  const sender = staging.send();
  const index = await sender.begin();
  for await (const chunk of content) {
    count(chunk.length);
    await sender.write(chunk);
  }
  return (await sender.end())[index]!;
}

function refuseDirectory(entry: EntryRecord | undefined): void {
  if (entry?.kind !== "directory") return;
  const { path } = entry;
  throw new RuntimeError("FILE_WRONG_KIND", `${shown(path)} is a directory`, { details: { path } });
}

function checkBase(record: CodebaseRecord, baseVersion: number | undefined): void {
  if (baseVersion === undefined || baseVersion === record.version) return;
  throw new RuntimeError("VERSION_CONFLICT", `the codebase is at version ${record.version}, not ${baseVersion}`, {
    details: { version: String(record.version) },
    hint: "look at what changed, and try again from there",
  });
}

function checkMessage(message: string): string {
  if (message.length > LONGEST_MESSAGE || !message.isWellFormed()) {
    throw invalid(`message is longer than ${LONGEST_MESSAGE} characters, or not Unicode`);
  }
  return message;
}
