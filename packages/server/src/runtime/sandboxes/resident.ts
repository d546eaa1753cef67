import { compileRules, type Policy } from "@agentfense/permission";
import type { Sandbox } from "../../isolation/sandbox/api.ts";
import { RuntimeError } from "../errors.ts";
import type { SandboxMetadata, SandboxRecord } from "../store/store.ts";
import { Turns } from "../turns.ts";
import { sandboxNotFound, sandboxNotRunning } from "./errors.ts";

/** What a sandbox has while it runs. */
export interface Running {
  readonly sandbox: Sandbox;
  /** The directory of its codebase. */
  readonly lower: string;
  /** Lets go of that directory, and of its home. */
  release(): Promise<void>;
  /** Takes note of what others did to the codebase; absent where whoever does something there says so. */
  readonly lookAgain?: (() => Promise<void>) | undefined;
}

/** One sandbox of the store, with what is alive of it. The manager alone changes sandboxes, so the record is the newest. */
export class Resident {
  /** Changes of state, and what must not meet one, take turns. */
  readonly turns = new Turns();
  /** One sync at a time; none of them waits for a turn. */
  readonly syncs = new Turns();
  /** Open sessions, and those in the making. */
  sessionCount = 0;
  /** Calls that need a process and are not over. */
  calls = 0;
  /** When something was last asked of it, in performance.now(). */
  askedAtMs = performance.now();
  idleTimer: NodeJS.Timeout | undefined;
  /** It is about to pause because nothing was asked of it. */
  isDozing = false;
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
  #accepting = false;
  #departure: Promise<void> | undefined;
  #record: SandboxRecord;
  #policy: Policy | undefined;

  constructor(record: SandboxRecord) {
    this.#record = record;
    this.lastProcessNumber = record.lastProcessNumber;
  }

  get id(): string {
    return this.#record.id;
  }

  get record(): SandboxRecord {
    return this.#record;
  }

  set record(record: SandboxRecord) {
    if (record.rules !== this.#record.rules) this.#policy = undefined;
    this.#record = record;
  }

  asked(): void {
    this.askedAtMs = performance.now();
  }

  /** Stores what changes, and knows it. */
  async update(
    store: SandboxMetadata,
    changes: Parameters<SandboxMetadata["updateSandbox"]>[1],
  ): Promise<SandboxRecord> {
    const record = await store.updateSandbox(this.id, changes);
    if (record === undefined) throw sandboxNotFound();
    this.record = record;
    return record;
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

  /** From here on it takes commands, and answers about its files. */
  open(running: Running): void {
    this.running = running;
    this.#accepting = true;
    this.asked();
  }

  /** No more commands; those that run go on. */
  shut(): void {
    this.#accepting = false;
  }

  requireRunning(): Running {
    this.requirePresent();
    if (this.running !== undefined && this.#accepting) return this.running;
    this.refuseFailed();
    throw sandboxNotRunning();
  }

  refuseFailed(): void {
    if (this.#record.status !== "ERROR") return;
    throw new RuntimeError("SANDBOX_FAILED", `sandbox is not running: ${this.#record.statusReason}`, {
      details: { sandbox_id: this.id, status: "ERROR" },
      hint: "a sandbox that failed can only be destroyed",
    });
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
