import { Errno, errnoName, syscalls } from "@agentfense/fuse";
import { LEVEL, levelName, type Scope } from "@agentfense/permission";
import type { Delta } from "../filesystem/delta.ts";
import { type DeltaDirectory, readDeltaDirectory } from "../filesystem/delta-directory.ts";
import { textOf } from "../filesystem/names.ts";
import { ownRights } from "../filesystem/own-rights.ts";
import { isUnchanged, MODE_BITS, type Place, readTarget, statOf } from "./comparison.ts";
import { type Departure, dissolveOpaque, leaveDelta } from "./departure.ts";
import { typeOf } from "./diff.ts";
import { installDirectory, installFile, installLink, isUnfinishedName, removeUnfinished } from "./installation.ts";
import { emptyTree, type RemovalResult, removeTree } from "./removal.ts";
import type { ChangeReport, Outcome } from "./report.ts";
import type { Selection } from "./selection.ts";
import { isSensitive } from "./sensitive.ts";
import { DEPTH_LIMIT, namesIn, pathText } from "./walk.ts";

const { FileType, Open } = syscalls;

/** A directory of the delta and the one of the codebase that it changes. */
interface Pair {
  readonly delta: number;
  /** -1 in a dry run, where the codebase lacks it. */
  readonly lower: number;
  readonly names: readonly string[];
  readonly scope: Scope;
  readonly selection: Selection;
  /** Nothing of the codebase's directory shows in the sandbox. */
  readonly opaque: boolean;
}

/** One entry of the delta, on its way into the codebase. */
interface Candidate {
  readonly names: readonly string[];
  readonly scope: Scope;
  readonly selection: Selection;
  readonly source: Place;
  readonly target: Place;
  readonly isDeletion: boolean;
  /** In the delta: the entry, or the whiteout; empty for what is deleted with everything in its directory. */
  readonly now: syscalls.Stat;
  readonly old: syscalls.Stat | undefined;
}

export interface ApplicationOptions {
  readonly delta: Delta;
  readonly dryRun: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Carries a delta into a codebase, directory by directory, and writes down what became of each entry. */
export class Application {
  readonly changes: ChangeReport[] = [];
  readonly #delta: Delta;
  readonly #dryRun: boolean;
  readonly #signal: AbortSignal | undefined;

  constructor({ delta, dryRun, signal }: ApplicationOptions) {
    this.#delta = delta;
    this.#dryRun = dryRun;
    this.#signal = signal;
  }

  async directory(pair: Pair): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#signal?.throwIfAborted();
    using _rights = ownRights(pair.delta);
    const read = readDeltaDirectory(pair.delta);
    if (typeof read === "number") return this.#failedDirectory(pair, -read);
    if (!this.#dryRun) removeUnfinished(pair.lower);
    const opaque = pair.opaque || read.opaque;
    const deleted = new Set([...read.whiteouts.keys(), ...(opaque && pair.lower >= 0 ? namesIn([pair.lower]) : [])]);
    if (!this.#dryRun && read.opaque) {
      const code = dissolveOpaque(this.#delta, pair.delta, pair.lower, read.names);
      if (code < 0) return this.#failedDirectory(pair, -code);
    }
    this.#reportMeaningless(pair, read);
    const departures: Departure[] = [];
    for (const name of [...new Set([...read.names, ...deleted])].sort()) {
      this.#signal?.throwIfAborted();
      if (pair.selection.child(name).standing === "outside") continue;
      const left = await this.#entry({ ...pair, opaque }, read, name);
      if (left !== undefined) departures.push(left);
    }
    if (!this.#dryRun && departures.length > 0) this.#settle(pair, departures);
  }

  /** Returns how the entry leaves the delta, if it does. */
  async #entry(pair: Pair, read: DeltaDirectory, name: string): Promise<Departure | undefined> {
    const isEntry = read.names.has(name);
    const marker = isEntry ? name : read.whiteouts.get(name);
    const now = marker === undefined ? undefined : statOf({ directory: pair.delta, name: marker });
    const candidate: Candidate = {
      names: [...pair.names, name],
      scope: pair.scope.child(textOf(name)),
      selection: pair.selection.child(name),
      source: { directory: pair.delta, name },
      target: { directory: pair.lower, name },
      isDeletion: !isEntry,
      now: now ?? new syscalls.Stat(),
      old: statOf({ directory: pair.lower, name }),
    };
    if (isEntry && now === undefined) return undefined; // gone meanwhile
    if (isEntry && candidate.now.type === FileType.DIRECTORY) return this.#subdirectory(candidate, pair);
    if (candidate.selection.standing !== "within") return undefined;
    const applied = isEntry ? await this.#replacement(candidate) : await this.#deletion(candidate);
    return applied ? { name, isDirectory: false } : undefined;
  }

  async #replacement(candidate: Candidate): Promise<boolean> {
    const { now, old, source, target, scope } = candidate;
    if (old !== undefined && (await isUnchanged(source, target))) return true;
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", refusal);
    if (now.type !== FileType.REGULAR && now.type !== FileType.SYMLINK) {
      return this.#report(candidate, "refused", "a fifo, socket or device is never carried over");
    }
    if (old?.type === FileType.DIRECTORY) {
      const path = pathText(candidate.names);
      // All or nothing: what is protected below keeps the whole directory.
      let removal = await emptyTree(target, scope, path, { rehearsal: true });
      if (removal.gone && !this.#dryRun) removal = await emptyTree(target, scope, path, { rehearsal: false });
      if (!removal.gone) return this.#reportRemains(candidate, removal);
    }
    if (this.#dryRun) return this.#report(candidate, "applied");
    const isLink = now.type === FileType.SYMLINK;
    const errno = isLink ? installLink(source, target) : await installFile(source, target, this.#signal);
    return errno === 0 ? this.#report(candidate, "applied") : this.#report(candidate, "failed", reasonFor(errno));
  }

  async #deletion(candidate: Candidate): Promise<boolean> {
    const { names, old, scope, target } = candidate;
    if (old === undefined) return true; // the codebase lost it too
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", refusal);
    const rehearsal = this.#dryRun;
    const removal = await removeTree(target, old.type >> 12, scope, pathText(names), { rehearsal });
    return removal.gone ? this.#report(candidate, "applied") : this.#reportRemains(candidate, removal);
  }

  async #subdirectory(candidate: Candidate, pair: Pair): Promise<Departure | undefined> {
    const { names, scope, selection, now, old, source, target } = candidate;
    const merges = old?.type === FileType.DIRECTORY;
    if (names.length > DEPTH_LIMIT) {
      this.#report(candidate, "failed", `more than ${DEPTH_LIMIT} directories deep`);
      return undefined;
    }
    if (!merges && !this.#makeDirectory(candidate)) return undefined;
    const delta = syscalls.openat(source.directory, source.name, Open.PATH | Open.DIRECTORY);
    const lower = syscalls.openat(target.directory, target.name, Open.RDONLY | Open.DIRECTORY);
    try {
      const missing = lower < 0 && !(this.#dryRun && !merges);
      if (delta < 0 || missing) {
        this.#report(candidate, "failed", reasonFor(-Math.min(delta, lower)));
        return undefined;
      }
      await this.directory({ delta, lower, names, scope, selection, opaque: pair.opaque });
    } finally {
      for (const fd of [delta, lower]) if (fd >= 0) syscalls.close(fd);
    }
    const settled = merges ? this.#settleMode(candidate, old) : this.#finishDirectory(target, now);
    return settled ? { name: source.name, isDirectory: true } : undefined;
  }

  #makeDirectory(candidate: Candidate): boolean {
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", `${refusal}; so is all below`);
    const errno = this.#dryRun ? 0 : installDirectory(candidate.target);
    return errno === 0 ? this.#report(candidate, "applied") : this.#report(candidate, "failed", reasonFor(errno));
  }

  // A mode that shuts out its owner comes when all is in place; so do the times.
  #finishDirectory({ directory, name }: Place, now: syscalls.Stat): boolean {
    if (this.#dryRun) return true;
    syscalls.chmodat(directory, name, now.mode & MODE_BITS);
    syscalls.utimensat(directory, name, now.mtime, now.mtimeNs, now.mtime, now.mtimeNs);
    return true;
  }

  #settleMode(candidate: Candidate, old: syscalls.Stat): boolean {
    const { directory, name } = candidate.target;
    const mode = candidate.now.mode & MODE_BITS;
    if ((old.mode & MODE_BITS) === mode) return true;
    if (candidate.selection.standing !== "within") return false;
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", refusal);
    const code = this.#dryRun ? 0 : syscalls.chmodat(directory, name, (old.mode & 0o7000) | mode);
    return code === 0 ? this.#report(candidate, "applied") : this.#report(candidate, "failed", reasonFor(-code));
  }

  // Only what is safely on the disk leaves the delta.
  #settle(pair: Pair, departures: readonly Departure[]): void {
    const synced = syscalls.fsync(pair.lower);
    const errno = synced < 0 ? -synced : leaveDelta(pair.delta, departures);
    if (errno !== 0) {
      this.#failedDirectory(pair, errno, "its changes are applied but could not leave the delta");
    }
  }

  #refusal({ names, scope, old }: Candidate): string | undefined {
    const { level } = scope;
    if (level < LEVEL.write) return level === LEVEL.none ? "the rules hide this path" : `level ${levelName(level)}`;
    if (isUnfinishedName(names.at(-1)!)) return "the name is kept for files under construction";
    const isDevice = old?.type === FileType.CHARACTER || old?.type === FileType.BLOCK;
    return isDevice ? "a device is there" : undefined;
  }

  /** True for an applied change, so that a caller can return what it reports. */
  #report(candidate: Candidate, outcome: Outcome, reason?: string): boolean {
    const { names, now, old, source, isDeletion } = candidate;
    const path = pathText(names);
    const target = now.type === FileType.SYMLINK ? readTarget(source) : undefined;
    this.changes.push({
      outcome,
      kind: isDeletion ? "deleted" : old === undefined ? "added" : "modified",
      path,
      type: typeOf(isDeletion ? (old ?? now) : now),
      ...(reason !== undefined && { reason }),
      sensitive: !isDeletion && isSensitive(path, target),
      overwroteNewer: outcome === "applied" && isNewer(old, now),
    });
    return outcome === "applied";
  }

  #reportRemains(candidate: Candidate, { protectedPath, errno }: RemovalResult): boolean {
    if (protectedPath === undefined) return this.#report(candidate, "failed", reasonFor(errno ?? Errno.ENOTEMPTY));
    return this.#report(candidate, "refused", `the directory holds what the rules protect: ${protectedPath}`);
  }

  #reportMeaningless(pair: Pair, { meaningless }: DeltaDirectory): void {
    if (pair.selection.standing !== "within") return;
    for (const name of meaningless) {
      this.changes.push({
        outcome: "refused",
        kind: "deleted",
        path: pathText([...pair.names, name]),
        type: "other",
        reason: "a name of the delta's bookkeeping that means nothing",
        sensitive: false,
        overwroteNewer: false,
      });
    }
  }

  #failedDirectory({ names }: Pair, errno: number, reason = "the directory cannot be read"): void {
    this.changes.push({
      outcome: "failed",
      kind: "modified",
      path: pathText(names),
      type: "directory",
      reason: `${reason}: ${reasonFor(errno)}`,
      sensitive: false,
      overwroteNewer: false,
    });
  }
}

/**
 * The codebase's file changed (its ctime) after the inode came to be that holds the sandbox's version (its birth). Neither
 * time can be set by anybody. A sandbox that writes a new file over a copied one hides what happened in between; file
 * systems without birth times tell nothing.
 */
function isNewer(old: syscalls.Stat | undefined, now: syscalls.Stat): boolean {
  if (old === undefined || old.type === FileType.DIRECTORY || now.btime === 0) return false;
  return old.ctime > now.btime || (old.ctime === now.btime && old.ctimeNs > now.btimeNs);
}

function reasonFor(errno: number): string {
  if (errno === Errno.ESTALE) return "it changed while it was being copied";
  if (errno === Errno.ENOSPC || errno === Errno.EDQUOT) return "the disk is full";
  if (errno === Errno.ENOTEMPTY) return "the directory is not empty";
  return errnoName(errno);
}
