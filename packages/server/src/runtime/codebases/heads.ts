import type { Touched } from "../../isolation/codebase/steps.ts";
import type { CodebaseDisk } from "../../isolation/jobs/codebase-disk.ts";
import { Queue } from "../../isolation/waiting.ts";
import type { JournalRecord } from "../store/store.ts";

/**
 * What is known in memory of a codebase's newest version: who may change it, and what is being changed. The manifest
 * changes after the disk has, so between the two a reader who knows the manifest finds other content on the disk. What
 * it wants is then among what the change keeps: every file gets its kept name before anything else gets its path.
 */
export class Head {
  readonly turns = new Queue();
  /** Begun and not settled; stays when the disk fails, to be tried again. */
  journal: JournalRecord | undefined;
  /** The manifest has what the journal says. */
  isFinished = false;
  /** Of the journal: whether the database did this last is not known. */
  doubt: "begun" | "finished" | undefined;
  /** Until it is asked again. */
  resolving: NodeJS.Timeout | undefined;
  /** What its steps changed the names in. */
  touched: Touched;
  /** Grows when a change is finished: what was read from the manifest before may not be so any more. */
  generation = 0;
  #keptAs: ReadonlyMap<string, string> = new Map();

  begin(journal: JournalRecord): void {
    this.journal = journal;
    this.isFinished = false;
    this.doubt = undefined;
    const files = journal.changes.filter(({ keptAs }) => keptAs !== "");
    this.#keptAs = new Map(files.map(({ path, keptAs }) => [path, keptAs]));
  }

  finish(): void {
    this.isFinished = true;
    this.#keptAs = new Map();
    this.generation += 1;
  }

  settle(): void {
    this.journal = undefined;
    this.doubt = undefined;
  }

  /** Opens the file that the manifest has at the path now. Nothing can begin or finish while it does: it does not wait. */
  openFile(disk: CodebaseDisk, codebaseId: string, path: string): number | undefined {
    const keptAs = this.#keptAs.get(path);
    if (keptAs === undefined) return disk.openTreeFile(codebaseId, path);
    // The change runs on another thread meanwhile. A file without a kept name is still at its path when it still has none.
    const kept = disk.openKept(codebaseId, keptAs);
    if (kept !== undefined) return kept;
    const inTree = disk.openTreeFile(codebaseId, path);
    const now = disk.openKept(codebaseId, keptAs);
    if (now === undefined) return inTree;
    if (inTree !== undefined) disk.close(inTree);
    return now;
  }
}

/** The heads of the codebases that were in use since the start. */
export class Heads implements AsyncDisposable {
  readonly #heads = new Map<string, Head>();

  of(codebaseId: string): Head {
    const head = this.#heads.get(codebaseId) ?? new Head();
    this.#heads.set(codebaseId, head);
    return head;
  }

  /** Forgets a codebase that is gone; whoever waits for its lock finds that out. */
  forget(codebaseId: string): void {
    this.#heads.delete(codebaseId);
  }

  /** Waits for what is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#heads.values()].map(({ turns }) => turns.settled()));
  }
}
