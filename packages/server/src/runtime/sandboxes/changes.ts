import { LEVEL } from "@agentfense/permission";
import type { Caller } from "../caller.ts";
import { RuntimeError } from "../errors.ts";
import { decodePageToken, encodePageToken, type Page } from "../page.ts";
import type { ApplyOutcome, ChangesRequest, DiffRequest, FileDiff, SandboxChange } from "./api.ts";
import type { DeltaPlace } from "./delta-work.ts";
import { invalid, translating } from "./errors.ts";
import type { SandboxesOptions } from "./options.ts";
import { workspacePaths } from "./paths.ts";
import type { Resident } from "./resident.ts";
import { refuseSync, type Sync, type Written } from "./sync.ts";
import type { Witness } from "./witness.ts";

export interface ChangesParts extends Pick<SandboxesOptions, "codebases" | "deltas"> {
  readonly sync: Sync;
  readonly witness: Witness;
  deltaOf(resident: Resident): string;
}

/** A page size of 0 asks for all there is; an agent can make more than one answer should hold. */
const ALL = 100_000;

/** What sandboxes changed and have not synced: shown, applied, thrown away. In any state of the sandbox. */
export class Changes {
  readonly #parts: ChangesParts;

  constructor(parts: ChangesParts) {
    this.#parts = parts;
  }

  async list(resident: Resident, { fold = false, ...page }: ChangesRequest): Promise<Page<SandboxChange>> {
    if (page.pageSize < 0) throw invalid("page_size is not negative");
    const after = decodePageToken(page.pageToken, isPathKey)?.[0];
    const limit = Math.min(page.pageSize === 0 ? ALL : page.pageSize, ALL);
    const { deltas } = this.#parts;
    const list = (place: DeltaPlace) => (fold ? deltas.listFolded(place) : deltas.list(place));
    const all = (await this.#inPlace<readonly SandboxChange[]>(resident, undefined, list, [])).map((change) => {
      return { change, key: fold ? foldedKey(change) : change.path };
    });
    const rest = (after === undefined ? all : all.filter(({ key }) => key > after)).sort((a, b) =>
      a.key < b.key ? -1 : 1,
    );
    const last = rest[limit - 1];
    return {
      items: rest.slice(0, limit).map(({ change }) => change),
      nextPageToken: rest.length > limit && last ? encodePageToken([last.key]) : "",
    };
  }

  async *diff(resident: Resident, { paths, patch, signal }: DiffRequest): AsyncGenerator<FileDiff> {
    const selected = workspacePaths(paths);
    const { deltas } = this.#parts;
    const delta = this.#parts.deltaOf(resident);
    if (await deltas.isEmpty(delta)) return requireNone(selected);
    const layer = await this.#layer(resident);
    try {
      yield* deltas.diff({ ...placeOf(resident, delta, layer.directory, selected), patch }, signal);
    } finally {
      await layer.release();
    }
  }

  async apply(
    caller: Caller,
    resident: Resident,
    request: { readonly paths: readonly string[]; readonly dryRun: boolean; readonly signal?: AbortSignal },
  ): Promise<{ readonly version: number; readonly outcomes: readonly ApplyOutcome[] }> {
    const selected = workspacePaths(request.paths);
    refuseSync(resident);
    const { sync } = this.#parts;
    return await resident.turns.take(() =>
      this.#inPlace(
        resident,
        selected,
        async (place) => {
          const written = request.dryRun
            ? await sync.rehearse(resident, place, request.signal)
            : await sync.apply(resident, caller, place, request.signal);
          return answerOf(resident, written);
        },
        { version: 0, outcomes: [] },
      ),
    );
  }

  async discard(caller: Caller, resident: Resident, paths: readonly string[]): Promise<readonly SandboxChange[]> {
    const selected = workspacePaths(paths);
    return await resident.turns.take(() =>
      this.#inPlace(
        resident,
        selected,
        (place) =>
          resident.syncs.take(async () => {
            const changes = await this.#parts.deltas.list(place);
            const failed = await this.#discard(resident, place);
            const isLeft = (path: string): boolean => failed.some((kept) => isAtOrBelow(path, kept));
            const isSelected = (path: string): boolean => selected?.some((each) => isAtOrBelow(path, each)) ?? true;
            const discarded = changes.filter(({ path }) => !isLeft(path));
            resident.caughtUp((path) => isSelected(path) && !isLeft(path));
            this.#parts.witness.tell("changes_discarded", resident, caller, {
              data: { changes: discarded.length, kept: changes.length - discarded.length },
            });
            return discarded;
          }),
        [],
      ),
    );
  }

  /** Gives the paths whose changes are still there. */
  async #discard(resident: Resident, { delta, paths }: DeltaPlace): Promise<readonly string[]> {
    if (resident.running === undefined) return await this.#parts.deltas.discard(delta, paths);
    const { failed } = await resident.running.sandbox.discard(paths);
    return failed.map(({ path }) => path);
  }

  /** Where nothing was ever changed there is nothing to open, and no named path is right. */
  async #inPlace<T>(
    resident: Resident,
    paths: readonly string[] | undefined,
    work: (place: DeltaPlace) => Promise<T>,
    nothing: T,
  ): Promise<T> {
    resident.requirePresent();
    const delta = this.#parts.deltaOf(resident);
    if (await this.#parts.deltas.isEmpty(delta)) {
      requireNone(paths);
      return nothing;
    }
    const layer = await this.#layer(resident);
    try {
      return await translating(work(placeOf(resident, delta, layer.directory, paths)));
    } finally {
      await layer.release();
    }
  }

  /** The codebase's directory for as long as it is looked at, also when the sandbox stops meanwhile. */
  async #layer(resident: Resident): Promise<{ readonly directory: string; release(): Promise<void> }> {
    const { codebaseId, codebaseVersion } = resident.record;
    return await translating(this.#parts.codebases.open(codebaseId, codebaseVersion));
  }
}

function placeOf({ record }: Resident, delta: string, lower: string, paths: readonly string[] | undefined): DeltaPlace {
  return { delta, lower, rules: record.rules, ...(paths === undefined ? {} : { paths }) };
}

/** As in the list of changes: what the sandbox may not read now is left out, whatever became of it. */
function answerOf(
  { policy }: Resident,
  { version, collection, conflicts }: Written,
): { readonly version: number; readonly outcomes: readonly ApplyOutcome[] } {
  const conflicting = new Set(conflicts.map(({ path }) => `/${path}`));
  return {
    version,
    outcomes: collection.changes
      .filter(({ change }) => policy.decide(change.path).level >= LEVEL.read)
      .map(({ change, staged, reason, sensitive }) => ({
        change,
        applied: staged !== undefined,
        reason,
        sensitive,
        conflict: conflicting.has(change.path),
      })),
  };
}

function requireNone(paths: readonly string[] | undefined): void {
  const [first] = paths ?? [];
  if (first !== undefined) throw new RuntimeError("FILE_NOT_FOUND", `the sandbox changes nothing at ${first}`);
}

function isAtOrBelow(path: string, directory: string): boolean {
  return directory === "/" || path === directory || path.startsWith(`${directory}/`);
}

/** What is ignored comes last; before it the entries of one directory stand together. */
function foldedKey({ path, folded }: SandboxChange): string {
  const slash = path.lastIndexOf("/");
  return folded === undefined ? `0${path.slice(0, slash)}\0${path.slice(slash)}` : `1${path}`;
}

function isPathKey(value: unknown): value is readonly [string] {
  return Array.isArray(value) && value.length === 1 && typeof value[0] === "string";
}
