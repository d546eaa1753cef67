import { LEVEL } from "@agentfense/permission";
import { isWithin } from "../../isolation/instance/home-directory.ts";
import { decodePageToken, pageOf } from "../page.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import type { ApplyOutcome, SandboxChange, Sandboxes } from "./api.ts";
import { type DeltaPlace, layersBeneath } from "./delta-work.ts";
import type { Parts } from "./parts.ts";
import { translating } from "./refusals.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";
import { workspacePaths } from "./request.ts";
import { refuseSync, type Written } from "./sync.ts";

/** A page size of 0 asks for all there is; an agent can make more than one answer should hold. */
const ALL = 100_000;

/** What sandboxes changed and have not synced: shown, applied, thrown away. In any state of the sandbox. */
export function changeCalls(parts: Parts): Pick<Sandboxes, "changes" | "diff" | "apply" | "discard"> {
  const { registry, codebases, deltas, sync, auditTrail, deltaOf } = parts;

  /** The codebase's directory for as long as it is looked at, also when the sandbox stops meanwhile. */
  const layerOf = ({ record }: RegisteredSandbox) =>
    translating(codebases.open(record.codebaseId, record.codebaseVersion));

  /** Where nothing was ever changed there is nothing to open, and no named path is right. */
  async function inPlace<T>(
    registered: RegisteredSandbox,
    paths: readonly string[] | undefined,
    work: (place: DeltaPlace) => Promise<T>,
    nothing: T,
  ): Promise<T> {
    registered.requirePresent();
    const delta = deltaOf(registered);
    if (await deltas.isEmpty(delta)) {
      requireNone(paths);
      return nothing;
    }
    const layer = await layerOf(registered);
    try {
      return await translating(work(placeOf(registered, delta, layer.directory, paths)));
    } finally {
      await layer.release();
    }
  }

  /** Gives the paths whose changes are still there. */
  async function discardAt({ running }: RegisteredSandbox, { delta, paths }: DeltaPlace): Promise<readonly string[]> {
    if (running === undefined) return await deltas.discard(delta, paths);
    const { failed } = await running.sandbox.discard(paths);
    return failed.map(({ path }) => path);
  }

  return {
    async changes(caller, id, { fold = false, pageSize, pageToken }) {
      const registered = registry.find(caller, id);
      if (pageSize < 0) throw invalid("page_size is not negative");
      const after = decodePageToken(pageToken, ["string"])?.[0];
      const list = (place: DeltaPlace) => (fold ? deltas.listFolded(place) : deltas.list(place));
      const all = (await inPlace<readonly SandboxChange[]>(registered, undefined, list, [])).map((change) => {
        return { change, key: fold ? foldedKey(change) : change.path };
      });
      const rest = (after === undefined ? all : all.filter(({ key }) => key > after)).sort((a, b) =>
        a.key < b.key ? -1 : 1,
      );
      const page = pageOf(rest, Math.min(pageSize === 0 ? ALL : pageSize, ALL), ({ key }) => [key]);
      return { ...page, items: page.items.map(({ change }) => change) };
    },

    async *diff(caller, id, { paths, patch, signal }) {
      const registered = registry.find(caller, id);
      const selected = workspacePaths(paths);
      const delta = deltaOf(registered);
      if (await deltas.isEmpty(delta)) return requireNone(selected);
      const layer = await layerOf(registered);
      try {
        yield* deltas.diff({ ...placeOf(registered, delta, layer.directory, selected), patch }, signal);
      } finally {
        await layer.release();
      }
    },

    async apply(caller, id, { paths, dryRun, holdExecutables = false, signal }) {
      const registered = registry.find(caller, id);
      const selected = workspacePaths(paths);
      refuseSync(registered);
      const written = (place: DeltaPlace) =>
        dryRun ? sync.rehearse(registered, place, signal) : sync.apply(registered, caller, place, signal);
      return await registered.turns.run(() =>
        inPlace(
          registered,
          selected,
          async (place) => answerOf(registered, await written({ ...place, holdsSensitive: holdExecutables })),
          { version: 0, outcomes: [] },
        ),
      );
    },

    async discard(caller, id, paths) {
      const registered = registry.find(caller, id);
      const selected = workspacePaths(paths);
      const discard = async (place: DeltaPlace): Promise<readonly SandboxChange[]> => {
        if ((await layersBeneath(place.delta)).length > 0) throw onSnapshot(registered.id);
        const changes = await deltas.list(place);
        const failed = await discardAt(registered, place);
        const isLeft = (path: string): boolean => failed.some((kept) => isWithin(path, kept));
        const isSelected = (path: string): boolean => selected?.some((each) => isWithin(path, each)) ?? true;
        const discarded = changes.filter(({ path }) => !isLeft(path));
        registered.caughtUp((path) => isSelected(path) && !isLeft(path));
        auditTrail.tell("changes_discarded", registered, caller, {
          data: { changes: discarded.length, kept: changes.length - discarded.length },
        });
        return discarded;
      };
      return await registered.turns.run(() =>
        inPlace(registered, selected, (place) => registered.syncs.run(() => discard(place)), []),
      );
    },
  };
}

function placeOf(
  { record }: RegisteredSandbox,
  delta: string,
  lower: string,
  paths: readonly string[] | undefined,
): DeltaPlace {
  return { delta, lower, rules: record.rules, ...(paths === undefined ? {} : { paths }) };
}

/** As in the list of changes: what the sandbox may not read now is left out, whatever became of it. */
function answerOf(
  { policy }: RegisteredSandbox,
  { version, collection, conflicts }: Written,
): { readonly version: number; readonly outcomes: readonly ApplyOutcome[] } {
  const conflicting = new Set(conflicts.map(({ path }) => `/${path}`));
  return {
    version,
    outcomes: collection.changes
      .filter(({ change }) => policy.decide(change.path).level >= LEVEL.read)
      .map(({ change, staged, reason }) => ({
        change,
        applied: staged !== undefined,
        reason,
        conflict: conflicting.has(change.path),
      })),
  };
}

function requireNone(paths: readonly string[] | undefined): void {
  const [first] = paths ?? [];
  if (first !== undefined) throw new RuntimeError("FILE_NOT_FOUND", `the sandbox changes nothing at ${first}`);
}

/** What is ignored comes last; before it the entries of one directory stand together. */
function foldedKey({ path, folded }: SandboxChange): string {
  const slash = path.lastIndexOf("/");
  return folded === undefined ? `0${path.slice(0, slash)}\0${path.slice(slash)}` : `1${path}`;
}

function onSnapshot(sandboxId: string): RuntimeError {
  return new RuntimeError("SNAPSHOT_REFUSED", "the sandbox lies on a snapshot, of which nothing can be discarded", {
    details: { sandbox_id: sandboxId },
    hint: "restore an earlier snapshot, or change the files back",
  });
}
