import { join } from "node:path";
import type { CallOptions } from "../../model/options.ts";
import type { ApplyOutcome, Change } from "../../model/records.ts";
import {
  type CopySource,
  type Entry,
  isSame,
  type LocalEntry,
  type NewEntry,
  readEntry,
  readStamp,
  statusOf,
} from "./entry.ts";
import { DryRun, type Installation, LocalWriter } from "./local-writer.ts";

/** One path and what came of it. */
type Verdict =
  | { readonly applied: true }
  | { readonly applied: false; readonly reason: string; readonly conflict: boolean };

const APPLIED: Verdict = { applied: true };
/** What is left alone here is still applied there. */
const HAS_CHANGE = "; the codebase has the change";
const NOT_AS_TOLD: Verdict = { applied: false, reason: "the codebase is not as the server told", conflict: false };

/**
 * A directory of this machine that was uploaded, and takes back what a sandbox made of it. It touches only what is as it was
 * uploaded, goes through no symbolic link, and nothing outside is in reach whatever the server says.
 */
export class LocalCopy {
  readonly #directory: string;
  /** As uploaded, or as last written here; by paths like "src/a.ts". */
  readonly #known: Map<string, Entry>;

  /** The directory is absolute and real: no part of it is a link. */
  constructor(directory: string, uploaded: Iterable<readonly [path: string, entry: Entry]>) {
    this.#directory = directory;
    this.#known = new Map(uploaded);
  }

  /** Writes what was applied to the codebase. Each path is decided on its own: one that is left alone does not stop others. */
  async write(
    outcomes: readonly ApplyOutcome[],
    source: CopySource,
    options: CallOptions = {},
  ): Promise<ApplyOutcome[]> {
    const writer = new LocalWriter(this.#directory, source);
    const wanted = (path: string): Promise<NewEntry | undefined> => source.entry(path);
    const work = { writer, wanted, known: this.#known, signal: options.signal, note: HAS_CHANGE };
    try {
      return await this.#judge(outcomes, work);
    } finally {
      await writer.finish();
    }
  }

  /** What `write` would do after these changes; what the new content will be is not known, and nothing is touched. */
  async rehearse(outcomes: readonly ApplyOutcome[], options: CallOptions = {}): Promise<ApplyOutcome[]> {
    const planned = new Map(outcomes.map(({ change }) => [pathsOf(change)[0], plannedEntry(change)]));
    const wanted = async (path: string): Promise<NewEntry | undefined> => planned.get(path);
    const writer = new DryRun(this.#directory);
    return await this.#judge(outcomes, {
      writer,
      wanted,
      known: new Map(this.#known),
      signal: options.signal,
      note: "",
    });
  }

  async #judge(outcomes: readonly ApplyOutcome[], work: Work): Promise<ApplyOutcome[]> {
    const verdicts = new Map<string, Verdict>();
    const changes = outcomes.flatMap(({ change, applied }) => (applied ? [change] : []));
    const paths = new Set(changes.flatMap(pathsOf));
    const staying = new Set(changes.filter(({ kind }) => kind !== "deleted").map((change) => pathsOf(change)[0]));
    for (const { path, wanted } of await inOrder(paths, work)) {
      work.signal?.throwIfAborted();
      // What is missing by mistake must not be taken for deleted.
      const isAsTold = staying.has(path) === (wanted !== undefined);
      verdicts.set(path, isAsTold ? await this.#attempt(path, wanted, work) : NOT_AS_TOLD);
    }
    return outcomes.map((outcome) => (outcome.applied ? withVerdicts(outcome, verdicts, work.note) : outcome));
  }

  async #attempt(path: string, wanted: NewEntry | undefined, work: Work): Promise<Verdict> {
    try {
      return await this.#carryOut(path, wanted, work);
    } catch (error) {
      work.signal?.throwIfAborted();
      return { applied: false, reason: `it could not be written here: ${messageOf(error)}`, conflict: false };
    }
  }

  async #carryOut(path: string, wanted: NewEntry | undefined, work: Work): Promise<Verdict> {
    const { writer, known } = work;
    const names = namesOf(path);
    if (names === undefined) return { applied: false, reason: "it is no path of this directory", conflict: false };
    if (wanted !== undefined && isForeignRepository(names, known)) {
      return { applied: false, reason: "what belongs to Git is not written from a sandbox", conflict: false };
    }
    const obstacle = await this.#obstacle(names, work);
    if (obstacle !== undefined) return { applied: false, reason: obstacle, conflict: true };
    const place = join(this.#directory, ...names);
    const local = writer.isGone(path) ? undefined : await readEntry(place);
    const decision = decide({ known: known.get(path), local, wanted });
    if (decision.act === "leave") return { applied: false, reason: decision.reason, conflict: true };
    if (decision.act === "replace") {
      const isStill = async (): Promise<boolean> =>
        (await this.#obstacle(names, work)) === undefined && (await readStamp(place)) === (local?.stamp ?? "");
      const problem = await this.#replace({ path, names, wanted, local, isStill }, work);
      if (problem !== undefined) return { applied: false, reason: problem, conflict: true };
    } else if (wanted?.kind === "directory" || wanted?.kind === "file") await writer.setMode(path, wanted);
    if (wanted === undefined) known.delete(path);
    else known.set(path, wanted);
    return APPLIED;
  }

  async #replace(installation: Installation, { writer, known }: Work): Promise<string | undefined> {
    const { local, wanted } = installation;
    if (local?.kind === "directory" && !(await writer.isEmpty(installation))) {
      return wanted === undefined
        ? "the directory holds what the sandbox did not delete, or did not see"
        : "a directory is here that holds what the sandbox did not delete, or did not see";
    }
    if (wanted !== undefined) {
      for (const made of await writer.makeParents(installation.names)) known.set(made, { kind: "directory" });
    }
    return await writer.install(installation);
  }

  /** Why nothing may be done below the directories on the way; those that are missing will be made. */
  async #obstacle(
    names: readonly string[],
    { writer, known }: Pick<Work, "writer" | "known">,
  ): Promise<string | undefined> {
    for (let depth = 1; depth < names.length; depth += 1) {
      const path = names.slice(0, depth).join("/");
      if (writer.willBeDirectory(path)) continue;
      const status = await statusOf(join(this.#directory, path));
      if (status === undefined) return undefined;
      if (!status.isDirectory()) return `${path} is not a directory here`;
      if (known.get(path)?.kind !== "directory") return `the directory ${path} is here and was not uploaded`;
    }
    return undefined;
  }
}

interface Work {
  readonly writer: LocalWriter | DryRun;
  readonly wanted: (path: string) => Promise<NewEntry | undefined>;
  readonly known: Map<string, Entry>;
  readonly signal: AbortSignal | undefined;
  /** To add to the reason why something was left alone. */
  readonly note: string;
}

/** What goes, from the deepest up; then what comes, from the top down: whatever order the server tells them in. */
async function inOrder(
  paths: ReadonlySet<string>,
  { wanted }: Work,
): Promise<{ readonly path: string; readonly wanted: NewEntry | undefined }[]> {
  const steps: { path: string; wanted: NewEntry | undefined }[] = [];
  for (const path of [...paths].sort()) steps.push({ path, wanted: await wanted(path) });
  const going = steps.filter((step) => step.wanted === undefined).reverse();
  return [...going, ...steps.filter((step) => step.wanted !== undefined)];
}

/** The paths of a change as the codebase has them, "src/a.ts": the one that it is about first. */
export function pathsOf({ path, oldPath }: Change): string[] {
  return [path, ...(oldPath === "" ? [] : [oldPath])].map((each) => each.replace(/^\//, ""));
}

/** Before there is a version with the content: a hash that no file has, for it will be another one than before. */
function plannedEntry(change: Change): NewEntry | undefined {
  if (change.kind === "deleted") return undefined;
  if (change.type === "directory") return { kind: "directory", mode: 0o755 };
  if (change.type === "symlink") return { kind: "symlink", target: "", mode: 0o777 };
  return { kind: "file", sha256: "", mode: 0o644 };
}

function withVerdicts(outcome: ApplyOutcome, verdicts: ReadonlyMap<string, Verdict>, note: string): ApplyOutcome {
  for (const path of pathsOf(outcome.change)) {
    const verdict = verdicts.get(path);
    if (verdict === undefined || verdict.applied) continue;
    const { reason, conflict } = verdict;
    return { ...outcome, applied: false, reason: verdict === NOT_AS_TOLD ? reason : `${reason}${note}`, conflict };
  }
  return outcome;
}

/** Hooks and configuration in there are run by whoever uses Git next. */
function isForeignRepository(names: readonly string[], known: ReadonlyMap<string, Entry>): boolean {
  const at = names.findIndex((name) => name.toLowerCase() === ".git");
  return at >= 0 && !known.has(names.slice(0, at + 1).join("/"));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The names of a path that a server told of, "src/a.ts"; undefined when it is none, or could lead out of its directory. */
function namesOf(path: string): readonly string[] | undefined {
  const names = path.split("/");
  return names.every(isName) ? names : undefined;
}

function isName(name: string): boolean {
  if (name === "" || name === "." || name === ".." || name.includes("\0")) return false;
  // There, these are no names: they separate, and name drives and streams.
  return process.platform !== "win32" || !/[\\:]/.test(name);
}

/** What is to be done at a path of the local copy. */
export type Decision =
  /** It is like that already. */
  { readonly act: "nothing" } | { readonly act: "replace" } | { readonly act: "leave"; readonly reason: string };

/**
 * Whether a path may become what the codebase has there now. Only what is as it was uploaded, or as it was last written
 * from here, is ever touched: anything else is somebody's work.
 */
function decide(situation: {
  /** What was uploaded, or written by us since. */
  readonly known: Entry | undefined;
  /** What is there. */
  readonly local: LocalEntry | undefined;
  /** What is to be there. */
  readonly wanted: Entry | undefined;
}): Decision {
  const { known, local, wanted } = situation;
  if (local === undefined) {
    if (wanted === undefined) return { act: "nothing" };
    return known === undefined ? { act: "replace" } : { act: "leave", reason: "it was removed here since the upload" };
  }
  if (known === undefined) {
    const isFile = wanted !== undefined && wanted.kind !== "directory";
    if (isFile && isSame(local, wanted)) return { act: "nothing" };
    return { act: "leave", reason: "it is here and was not uploaded" };
  }
  if (wanted !== undefined && isSame(local, wanted)) return { act: "nothing" };
  return isSame(local, known) ? { act: "replace" } : { act: "leave", reason: "it changed here since the upload" };
}
