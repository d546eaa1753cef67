import { randomBytes } from "node:crypto";
import { compileRules, LEVEL, levelName, type Policy, type Rule } from "@agentfense/permission";
import type { AuditLog, EventDraft } from "../audit-log.ts";
import type { Codebase } from "../codebases/codebase.ts";
import { Fault } from "../faults.ts";
import { GuardedView } from "../files/guarded-view.ts";
import { Overlay } from "../files/overlay.ts";
import { PathTree } from "../files/path-tree.ts";
import { insidePath } from "../files/paths.ts";
import { Watchers } from "../files/watchers.ts";
import { MountedFiles } from "../shell/mounted-files.ts";
import type { MockNetworkRule } from "./network.ts";
import type { MockProcess } from "./process.ts";

export interface SandboxFacts {
  readonly codebaseVersion: number;
  readonly rules: readonly Rule[];
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly sync: "on-exec" | "manual" | "never";
  readonly network: "none" | "filtered" | "private" | "host";
  readonly networkRules: readonly MockNetworkRule[];
  readonly revocable: boolean;
  /** Told, and nothing else: what a mock runs needs no pause. */
  readonly idlePauseMs: number;
  /** "": one of its own. */
  readonly home: string;
  readonly resources: Readonly<Record<string, number>>;
  readonly expiresInMs: number | undefined;
}

/** A sandbox: its rules, what it changed, and whether it runs. */
export class MockSandbox {
  readonly id = `sb_${randomBytes(16).toString("hex")}`;
  readonly codebase: Codebase;
  readonly facts: SandboxFacts;
  readonly createdAtMs = Date.now();
  readonly expiresAtMs: number | undefined;
  readonly overlay: Overlay;
  readonly view: GuardedView;
  readonly watchers = new Watchers();
  readonly processes: MockProcess[] = [];
  /** What programs see: the workspace, the home, and a place of the box's own that is as empty as the box is new. */
  files: MountedFiles;
  networkRules: readonly MockNetworkRule[];
  startedAtMs: number | undefined;
  stoppedAtMs: number | undefined;
  /** Nobody finds it any more; what it did not sync is gone with it. */
  isDestroyed = false;
  /** Refusals of syncs that were told already. */
  toldRefusals: ReadonlySet<string> = new Set();
  readonly #audit: AuditLog;
  readonly #home: GuardedView;
  #rules: readonly Rule[];
  #policy: Policy;
  #ended: AbortController | undefined;
  #isPaused = false;

  constructor(codebase: Codebase, facts: SandboxFacts, audit: AuditLog, home: GuardedView) {
    this.#home = home;
    this.codebase = codebase;
    this.facts = facts;
    this.#audit = audit;
    this.#rules = facts.rules;
    this.networkRules = facts.networkRules;
    this.#policy = compileRules(facts.rules);
    this.expiresAtMs = facts.expiresInMs === undefined ? undefined : this.createdAtMs + facts.expiresInMs;
    const { codebaseVersion: pinned } = facts;
    const lower =
      pinned === 0
        ? () => ({ tree: codebase.tree, version: codebase.version })
        : constantly({ tree: codebase.treeAt(pinned).copy(), version: pinned });
    this.overlay = new Overlay(lower);
    this.view = this.#viewOf();
    this.files = this.#mounted();
  }

  get ownerId(): string {
    return this.codebase.ownerId;
  }

  get rules(): readonly Rule[] {
    return this.#rules;
  }

  get policy(): Policy {
    return this.#policy;
  }

  set rules(rules: readonly Rule[]) {
    this.#policy = compileRules(rules);
    this.#rules = rules;
  }

  get status(): "pending" | "running" | "paused" | "stopped" {
    if (this.#ended !== undefined) return this.#isPaused ? "paused" : "running";
    return this.startedAtMs === undefined ? "pending" : "stopped";
  }

  /** Whether changes may go to the codebase at all. */
  get mayWriteCodebase(): boolean {
    return !this.isDestroyed && this.facts.codebaseVersion === 0 && this.facts.sync !== "never";
  }

  /** Aborts when it stops. */
  requireRunning(): AbortSignal {
    if (this.#ended !== undefined) return this.#ended.signal;
    throw notRunning();
  }

  /** For what needs a process. */
  requireAwake(): AbortSignal {
    const ended = this.requireRunning();
    if (this.#isPaused) throw paused();
    return ended;
  }

  pause(): void {
    this.#turnTo("paused");
  }

  resume(): void {
    this.#turnTo("running");
  }

  #turnTo(status: "paused" | "running"): void {
    this.requireRunning();
    if (this.status === status) return;
    this.#isPaused = status === "paused";
    this.tell(this.#isPaused ? "sandbox_paused" : "sandbox_resumed", this.#isPaused ? { data: { idle: false } } : {});
  }

  start(): void {
    if (this.#isPaused) throw paused();
    if (this.#ended !== undefined) throw new Fault("SANDBOX_ALREADY_RUNNING", "sandbox is already running");
    this.#ended = new AbortController();
    this.startedAtMs = Date.now();
    this.files = this.#mounted();
  }

  /** Ends all that runs in it. */
  stop(): void {
    if (this.#ended === undefined) throw notRunning();
    this.#ended.abort();
    this.#ended = undefined;
    this.#isPaused = false;
    this.stoppedAtMs = Date.now();
  }

  /** Tells watchers of a change, unless the rules hide what changed. */
  announce(path: string, kind: "rename" | "change"): void {
    const isShown = this.#policy.decide(path).level > LEVEL.none || this.view.shows(path);
    if (isShown) this.watchers.announce(path, kind);
  }

  tell(type: string, event: Pick<EventDraft, "level" | "sessionId" | "data"> = {}): void {
    this.#audit.record({
      type,
      ownerId: this.ownerId,
      sandboxId: this.id,
      codebaseId: this.codebase.id,
      ...event,
    });
  }

  #mounted(): MountedFiles {
    return new MountedFiles([
      { at: "/workspace", view: this.view },
      { at: "/tmp", view: scratch() },
      { at: "/home/agent", view: this.#home },
    ]);
  }

  #viewOf(): GuardedView {
    return new GuardedView({
      overlay: this.overlay,
      policy: () => this.#policy,
      quotaBytes: this.facts.resources.diskBytes,
      onChanged: (path, kind) => this.announce(path, kind),
      onDenied: (path, operation, { level, rule }) =>
        this.tell("permission_denied", {
          level: "warn",
          data: {
            path: insidePath(path),
            operation,
            permission: levelName(level),
            rule,
            pattern: this.#rules[rule]?.pattern ?? "",
            suppressed: 0,
          },
        }),
      onOverQuota: (path, operation) =>
        this.tell("quota_exceeded", { level: "warn", data: { path: insidePath(path), operation, suppressed: 0 } }),
    });
  }
}

function notRunning(): Fault {
  return new Fault("SANDBOX_NOT_RUNNING", "sandbox is not running", { hint: "start it first" });
}

function paused(): Fault {
  return new Fault("SANDBOX_PAUSED", "sandbox is paused", { hint: "resume it first" });
}

function constantly<Value>(value: Value): () => Value {
  return () => value;
}

/** An empty place where everything is allowed. */
export function scratch(): GuardedView {
  const policy = compileRules([{ pattern: "**", permission: "write" }]);
  return new GuardedView({
    overlay: new Overlay(constantly({ tree: new PathTree(), version: 0 })),
    policy: () => policy,
    onChanged: () => {},
    onDenied: () => {},
    onOverQuota: () => {},
  });
}
