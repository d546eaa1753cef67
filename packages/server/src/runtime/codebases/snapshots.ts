import { invalid, RuntimeError } from "../runtime-error.ts";
import type { CodebaseMetadata, CodebaseRecord, EntryQuery, EntryRecord, VersionChangeRecord } from "../store/store.ts";
import type { Head } from "./heads.ts";
import { codebaseNotFound, type Parts } from "./parts.ts";
import { comparePaths, fileNotFound, parentOf, shown } from "./paths.ts";

/** Entries of a version, and where those of its files are that something else has the path of by now. */
export interface Listing {
  readonly entries: readonly EntryRecord[];
  readonly keptAs: ReadonlyMap<string, string>;
  /** The generation of the head when it was read. */
  readonly generation: number;
}

const ATTEMPTS = 3;

/**
 * Versions for reading: the newest one, less what came after. Readers wait for nobody; when a change is finished while they
 * look they look again, and only whoever keeps having bad luck waits for a turn.
 */
export class Snapshots {
  readonly #parts: Pick<Parts, "store" | "disk" | "heads">;

  constructor(parts: Pick<Parts, "store" | "disk" | "heads">) {
    this.#parts = parts;
  }

  async list(codebaseId: string, version: number, query: EntryQuery): Promise<Listing> {
    const head = this.#parts.heads.of(codebaseId);
    return await this.#settled(head, async () => {
      const { generation } = head;
      return { ...(await this.listNow(codebaseId, version, query)), generation };
    });
  }

  /** For those who have the codebase's turn. */
  async listNow(codebaseId: string, version: number, query: EntryQuery): Promise<Omit<Listing, "generation">> {
    const { directory, recursive, after = "", limit } = query;
    const changes = (await this.#changesAfter(codebaseId, version, { directory })).filter(
      ({ path }) => isListed(path, query) && comparePaths(path, after) > 0,
    );
    // Each later change hides one entry of the newest version at most.
    const most = limit === undefined ? undefined : limit + changes.length;
    const newest = await this.#parts.store.listEntries(codebaseId, { directory, recursive, after, limit: most });
    if (changes.length === 0) return { entries: newest, keptAs: new Map() };
    const changed = new Map(changes.map((change) => [change.path, change]));
    const entries = [
      ...newest.filter(({ path }) => !changed.has(path)),
      ...changes.flatMap(({ before }) => before ?? []),
    ].sort((a, b) => comparePaths(a.path, b.path));
    return { entries: limit === undefined ? entries : entries.slice(0, limit), keptAs: keptNames(changes) };
  }

  async entry(codebaseId: string, version: number, path: string): Promise<EntryRecord | undefined> {
    return await this.#settled(this.#parts.heads.of(codebaseId), () => this.#entryNow(codebaseId, version, path));
  }

  /** Opens a regular file of a version. */
  async openFile(
    codebaseId: string,
    version: number,
    path: string,
  ): Promise<{ readonly entry: EntryRecord; readonly fd: number }> {
    const head = this.#parts.heads.of(codebaseId);
    const opened = await this.#settled(head, async () => {
      const { generation } = head;
      const [change] = await this.#changesAfter(codebaseId, version, { path });
      const entry = change === undefined ? await this.#parts.store.entry(codebaseId, path) : change.before;
      if (entry === undefined || entry.kind !== "file" || head.generation !== generation)
        return { entry, fd: undefined };
      const fd =
        change === undefined
          ? head.openFile(this.#parts.disk, codebaseId, path)
          : this.#parts.disk.openKept(codebaseId, change.keptAs);
      return { entry, fd };
    });
    const { entry, fd } = opened;
    if (entry === undefined) throw fileNotFound(path);
    if (entry.kind !== "file") {
      throw new RuntimeError("FILE_WRONG_KIND", `${shown(path)} is a ${entry.kind}, not a file`, { details: { path } });
    }
    if (fd === undefined) throw await this.#lost(codebaseId, version, path);
    return { entry, fd };
  }

  /**
   * Opens the files of a version one after the other, however long that takes and whatever changes meanwhile, for as long as
   * the version is kept.
   */
  opener(codebaseId: string, version: number, directory: string, listing: Listing): (path: string) => Promise<number> {
    const head = this.#parts.heads.of(codebaseId);
    let { keptAs, generation } = listing;
    return async (path) => {
      while (head.generation !== generation) {
        const now = head.generation;
        keptAs = keptNames(await this.#changesAfter(codebaseId, version, { directory }));
        generation = now;
      }
      const kept = keptAs.get(path);
      const fd =
        kept === undefined
          ? head.openFile(this.#parts.disk, codebaseId, path)
          : this.#parts.disk.openKept(codebaseId, kept);
      if (fd === undefined) throw await this.#lost(codebaseId, version, path);
      return fd;
    };
  }

  async #entryNow(codebaseId: string, version: number, path: string): Promise<EntryRecord | undefined> {
    const [change] = await this.#changesAfter(codebaseId, version, { path });
    return change === undefined ? await this.#parts.store.entry(codebaseId, path) : change.before;
  }

  /** Asked in this order: a version that is there in the end was there when its changes were read. */
  async #changesAfter(
    codebaseId: string,
    version: number,
    query: { readonly path?: string; readonly directory?: string },
  ): Promise<readonly VersionChangeRecord[]> {
    const changes = await this.#parts.store.firstChangesAfter(codebaseId, version, query);
    await requireVersion(this.#parts.store, codebaseId, version);
    return changes;
  }

  /**
   * The content goes after its version, so it may have gone since that was looked for. Else the manifest has it and the disk has
   * not: somebody changed the server's directory by hand.
   */
  async #lost(codebaseId: string, version: number, path: string): Promise<RuntimeError> {
    await requireVersion(this.#parts.store, codebaseId, version);
    return new RuntimeError("INTERNAL", `the content of ${shown(path)} is lost`, { details: { path } });
  }

  async #settled<Result extends object | undefined>(head: Head, read: () => Promise<Result>): Promise<Result> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { generation } = head;
      const result = await read();
      if (head.generation === generation) return result;
      if (isOpened(result)) this.#parts.disk.close(result.fd);
    }
    return await head.turns.run(read);
  }
}

/** The version that a number stands for: 0 is the newest. */
export function resolveVersion(record: CodebaseRecord, version: number): number {
  if (version === 0) return record.version;
  if (Number.isSafeInteger(version) && version > 0 && version <= record.version) return version;
  if (!Number.isSafeInteger(version) || version < 0) {
    throw invalid(`version is no version: ${version}`);
  }
  throw new RuntimeError("VERSION_NOT_FOUND", `version ${version} not found: the newest is ${record.version}`, {
    details: { version: String(record.version) },
  });
}

/** Throws unless the version is kept. Version 0, that of a codebase without any, is. */
export async function requireVersion(
  store: Pick<CodebaseMetadata, "codebase" | "version">,
  codebaseId: string,
  version: number,
): Promise<void> {
  if (version === 0 || (await store.version(codebaseId, version)) !== undefined) return;
  const record = await store.codebase(codebaseId);
  if (record === undefined) throw codebaseNotFound();
  resolveVersion(record, version);
  throw new RuntimeError("VERSION_NOT_FOUND", `version ${version} not found: it is no longer kept`);
}

function isOpened(result: object | undefined): result is { readonly fd: number } {
  return result !== undefined && "fd" in result && typeof result.fd === "number";
}

function isListed(path: string, { directory, recursive }: EntryQuery): boolean {
  if (!recursive) return parentOf(path) === directory;
  return directory === "" || path.startsWith(`${directory}/`);
}

function keptNames(changes: readonly VersionChangeRecord[]): Map<string, string> {
  return new Map(changes.filter(({ keptAs }) => keptAs !== "").map(({ path, keptAs }) => [path, keptAs]));
}
