import type { Rule } from "@agentfense/permission";
import type { SettledEntry } from "../../isolation/filesystem/settlement.ts";
import type { StagedEntry } from "../codebases/api.ts";
import type { FileDiff, SandboxChange } from "./api.ts";

/** A delta, and the codebase it changes. */
export interface DeltaPlace {
  readonly delta: string;
  readonly lower: string;
  /** Those in force now, whatever they were when the delta was made. */
  readonly rules: readonly Rule[];
  /** Only these, each with all below it ("/src/a.ts"). One without a change is FILE_NOT_FOUND. */
  readonly paths?: readonly string[];
}

/** One change on its way into the codebase. */
export interface CollectedChange {
  readonly change: SandboxChange;
  /** Absent: it may not be written, and `reason` says why. */
  readonly staged?: StagedEntry;
  readonly reason: string;
  readonly sensitive: boolean;
  /** The sandbox has only what others replaced meanwhile: not written, and no fault of anybody's. */
  readonly superseded?: true;
}

export interface Collection {
  readonly changes: readonly CollectedChange[];
  /** What may leave the delta once the codebase has it, entries that change nothing included. */
  readonly settled: readonly SettledEntry[];
}

export interface DirectCollection extends Collection {
  /** "/src/a.ts": there the codebase's file had changed after the sandbox made its own version. */
  readonly overwritten: readonly string[];
}

/** What is done with deltas beside their mounts. It takes as long as they are large, so none of it is done on the API thread. */
export interface DeltaWork {
  /**
   * Copies what may be written to `staging`. Without one it only tells what it would do, and what may leave the delta is
   * what changes nothing.
   */
  collect(place: DeltaPlace & { readonly staging?: string }, signal?: AbortSignal): Promise<Collection>;
  /** Writes what may be written straight to the codebase, a directory of the host. Not to be cut short, so without a signal. */
  write(place: DeltaPlace & { readonly dryRun: boolean }): Promise<DirectCollection>;
  list(place: DeltaPlace, signal?: AbortSignal): Promise<readonly SandboxChange[]>;
  /** The same for people, see foldChanges. */
  listFolded(place: DeltaPlace, signal?: AbortSignal): Promise<readonly SandboxChange[]>;
  /** `patch`: what git apply takes, see DiffSpec. */
  diff(place: DeltaPlace & { readonly patch: boolean }, signal?: AbortSignal): AsyncIterable<FileDiff>;
  /** Of a sandbox that does not run; one that does settles and discards itself. */
  settle(place: Pick<DeltaPlace, "delta" | "lower">, entries: readonly SettledEntry[]): Promise<void>;
  discard(delta: string, paths: readonly string[] | undefined): Promise<readonly string[]>;
  /** Nothing was changed, seen at a glance; false when it takes more than that. */
  isEmpty(delta: string): Promise<boolean>;
  /** Bytes in it. */
  measure(delta: string): Promise<number>;
  remove(delta: string): Promise<void>;
}
