import { compileRules, type Policy } from "@agentfense/permission";
import type { SecretRule } from "../../isolation/network/secrets.ts";
import type { BoxedWorkspace } from "../../isolation/sandbox/api.ts";
import { Queue } from "../../isolation/waiting.ts";
import type { SandboxChanges, SandboxMetadata, SandboxRecord } from "../store/store.ts";
import { sandboxNotFound, sandboxNotRunning } from "./refusals.ts";
import { nextState, recorded, type State, type Step, stateOf } from "./state.ts";

/** What a sandbox has while it runs. */
export interface Running {
  readonly sandbox: BoxedWorkspace;
  /** It takes no more commands; those that run go on until they are ended. */
  readonly isEnding?: true;
  /** Without their values. Their hosts are on its network's list. */
  readonly secrets: readonly SecretRule[];
  /** The directory of its codebase. */
  readonly lower: string;
  /** Lets go of that directory, and of its home. */
  release(): Promise<void>;
  /** Takes note of what others did to the codebase; absent where whoever does something there says so. */
  readonly lookAgain?: (() => Promise<void>) | undefined;
}

/** How a step is taken. */
export interface Taking {
  /** Makes it so, before it is recorded. */
  work?(next: State): Promise<void>;
  /** Takes it back when it cannot be recorded. Without one it is so all the same. */
  undo?(before: State): Promise<void>;
  /** What else is recorded. */
  changes?(): SandboxChanges;
  /** The reason of an ERROR, or of a stop that nobody asked for. */
  readonly reason?: string;
}

/** One sandbox of the store, with what is alive of it. Nobody else changes sandboxes, so the record is the newest. */
export class RegisteredSandbox {
  /** Changes of state, and what must not meet one, take turns. */
  readonly turns = new Queue();
  /** One sync at a time; none of them waits for a turn. */
  readonly syncs = new Queue();
  /** Open sessions, and those in the making. */
  sessionCount = 0;
  /** Calls that need a process and are not over. */
  calls = 0;
  /** When something was last asked of it, in performance.now(). */
  askedAtMs = performance.now();
  idleTimer: NodeJS.Timeout | undefined;
  /** What is becoming of its state. */
  underway: Step | undefined;
  /** The number that its newest process has. */
  lastProcessNumber: number;
  /** Refusals of the last sync that were told already, as "path: reason". */
  toldRefusals: ReadonlySet<string> = new Set();
  /** From before the box starts until its processes are dead. */
  running: Running | undefined;
  /** After a restart of the server, until it runs again or cannot. */
  returning: Promise<void> | undefined;
  /** Ends a start that somebody no longer waits for. */
  starting: AbortController | undefined;
  /** Paths that changed in the codebase while the file system was being mounted. */
  missed: Set<string> | undefined;
  /**
   * When the sandbox had its own version of a path at the latest, for paths that others changed after that. The file that
   * it has there by now may be younger: editors replace what they save.
   */
  readonly #ownSinceMs = new Map<string, number>();
  readonly #store: SandboxMetadata;
  #departure: Promise<void> | undefined;
  #record: SandboxRecord;
  #policy: Policy | undefined;

  constructor(record: SandboxRecord, store: SandboxMetadata) {
    this.#record = record;
    this.#store = store;
    this.lastProcessNumber = record.lastProcessNumber;
  }

  get id(): string {
    return this.#record.id;
  }

  get record(): SandboxRecord {
    return this.#record;
  }

  get state(): State {
    return stateOf(this.#record);
  }

  /** Takes a step, in the sandbox's turn. One that is refused, or leads to where it is, does nothing. Gives the state after. */
  async step(step: Step, { work, undo, changes, reason }: Taking = {}): Promise<State> {
    const before = this.state;
    const next = nextState(step, this.#record);
    if (next === before) return next;
    this.underway = step;
    try {
      await work?.(next);
      const known = { ...changes?.(), ...recorded(next, reason) };
      await this.update(known).catch(async (error: unknown) => {
        if (undo === undefined) this.#record = { ...this.#record, ...known };
        else await undo(before);
        throw error;
      });
    } finally {
      this.underway = undefined;
    }
    return next;
  }

  asked(): void {
    this.askedAtMs = performance.now();
  }

  /** Stores what changes, and knows it. */
  async update(changes: SandboxChanges): Promise<void> {
    const record = await this.#store.updateSandbox(this.id, changes);
    if (record === undefined) throw sandboxNotFound();
    if (changes.rules !== undefined) this.#policy = undefined;
    this.#record = record;
  }

  /** Its rules, compiled. */
  get policy(): Policy {
    this.#policy ??= compileRules(this.#record.rules);
    return this.#policy;
  }

  /** Whether changes may go to the codebase at all. */
  get mayWriteCodebase(): boolean {
    return this.#record.codebaseVersion === 0 && this.#record.sync !== "never";
  }

  /** Others changed these paths at that time, while the sandbox had its own version of them. */
  overtaken(paths: readonly string[], atMs: number): void {
    for (const path of paths) if (!this.#ownSinceMs.has(path)) this.#ownSinceMs.set(path, atMs - 1);
  }

  /** When the sandbox made its version of a path, of which the file itself says `madeAtMs`. */
  ownSinceMs(path: string, madeAtMs: number): number {
    return Math.min(madeAtMs, this.#ownSinceMs.get(path) ?? madeAtMs);
  }

  /** The codebase shows there again, or its newest content is the sandbox's own. */
  caughtUp(isAt: (path: string) => boolean): void {
    for (const path of this.#ownSinceMs.keys()) if (isAt(path)) this.#ownSinceMs.delete(path);
  }

  /** For a call that needs the box: commands, and questions about its files. */
  requireRunning(): Running {
    this.requirePresent();
    nextState("use", this.#record);
    if (this.running === undefined || this.running.isEnding) throw sandboxNotRunning();
    return this.running;
  }

  requirePresent(): void {
    if (this.#departure !== undefined) throw sandboxNotFound();
  }

  /** Nobody finds it from here on; resolves when it is gone. */
  get departure(): Promise<void> | undefined {
    return this.#departure;
  }

  /** Begins its end. When that fails it is there again. */
  depart(work: () => Promise<void>): Promise<void> {
    this.requirePresent();
    const departure = work().catch((error: unknown) => {
      this.#departure = undefined;
      throw error;
    });
    this.#departure = departure;
    return departure;
  }
}
