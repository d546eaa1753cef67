import { randomBytes } from "node:crypto";
import { compileRules, levelName, type Policy, type Rule } from "@agentfense/permission";
import { SandboxStatus, SessionStatus } from "@agentfense/protocol/common";
import {
  type CreateSandboxRequest,
  type CreateSessionRequest,
  NetworkMode,
  RuntimeType,
  SandboxSchema,
  SessionSchema,
  SyncMode,
} from "@agentfense/protocol/sandbox";
import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { ruleOf } from "../client/messages/sandbox.ts";
import { Turns } from "../turns.ts";
import type { MockCodebase } from "./codebase.ts";
import { type Commands, checkCommand, type MockRun, type Outcome, workingDirectory } from "./commands.ts";
import type { EventDraft, EventLog } from "./events.ts";
import { Fault, invalid } from "./faults.ts";
import { Overlay } from "./overlay.ts";
import { insidePath } from "./path-tree.ts";
import { GuardedView } from "./view.ts";

/** A sandbox: its rules, what it changed, and whether it runs. */
export class MockSandbox {
  readonly codebase: MockCodebase;
  /** As clients are told of it. */
  readonly message;
  readonly env: Readonly<Record<string, string>>;
  readonly overlay: Overlay;
  readonly view: GuardedView;
  /** Nobody finds it any more; what it did not sync is gone with it. */
  isDestroyed = false;
  readonly #log: EventLog;
  #policy: Policy;
  /** Aborts when what runs in the sandbox has to end. */
  #ended = new AbortController();

  constructor(codebase: MockCodebase, request: CreateSandboxRequest, log: EventLog) {
    const { codebaseVersion, sync, network, networkRules, secrets, expiresIn } = request;
    const pinned = codebaseVersion === 0n ? undefined : codebase.at(Number(codebaseVersion));
    if (pinned !== undefined && sync === SyncMode.ON_EXEC) {
      throw invalid("a sandbox that is pinned to a version cannot sync to its codebase");
    }
    this.codebase = codebase;
    this.env = request.env;
    this.#log = log;
    // Whatever runtime was asked for, it is this one; limits, the home and what pauses or ends it are told and nothing else.
    const { codebaseId, permissions, labels, resources, revocable, idlePause, home, workspaceHome, pauseAtExpiry } =
      request;
    const expiresAt = expiresIn && timestampFromMs(Date.now() + durationMs(expiresIn));
    this.message = create(SandboxSchema, {
      ...{
        codebaseId,
        permissions,
        labels,
        codebaseVersion,
        networkRules,
        revocable,
        home,
        workspaceHome,
        pauseAtExpiry,
      },
      ...(resources && { resources }),
      ...(idlePause && { idlePause }),
      ...(expiresAt && { expiresAt }),
      id: `sb_${randomBytes(16).toString("hex")}`,
      status: SandboxStatus.PENDING,
      createdAt: timestampNow(),
      runtime: RuntimeType.MOCK,
      ownerId: codebase.message.ownerId,
      sync: sync || (pinned === undefined ? SyncMode.ON_EXEC : SyncMode.NEVER),
      // Of these the names alone: what runs in a mock sends nothing.
      secrets: secrets.map(({ name }) => name),
      network: network || (networkRules.length + secrets.length > 0 ? NetworkMode.FILTERED : NetworkMode.NONE),
    });
    this.#policy = compileRules(this.rules);
    this.overlay = new Overlay(() =>
      pinned === undefined ? codebase : { tree: pinned, version: Number(codebaseVersion) },
    );
    this.view = new GuardedView({
      overlay: this.overlay,
      policy: () => this.#policy,
      onDenied: (path, operation, { level, rule }) =>
        this.tell("permission_denied", {
          level: "warn",
          data: {
            ...{ path: insidePath(path), operation, permission: levelName(level), rule, suppressed: 0 },
            pattern: this.rules[rule]?.pattern ?? "",
          },
        }),
    });
  }

  get id(): string {
    return this.message.id;
  }

  get rules(): readonly Rule[] {
    return this.message.permissions.map(ruleOf);
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** In force at once. */
  setPermissions(permissions: CreateSandboxRequest["permissions"]): void {
    this.#policy = compileRules(permissions.map(ruleOf));
    this.message.permissions = permissions;
    this.tell("permissions_updated", { data: { permissions: this.rules } });
  }

  /** Whether changes may go to the codebase at all. */
  get mayWriteCodebase(): boolean {
    const { codebaseVersion, sync } = this.message;
    return !this.isDestroyed && codebaseVersion === 0n && sync !== SyncMode.NEVER;
  }

  get isRunning(): boolean {
    return this.message.status === SandboxStatus.RUNNING || this.message.status === SandboxStatus.PAUSED;
  }

  requireRunning(): void {
    if (!this.isRunning) throw new Fault("SANDBOX_NOT_RUNNING", "sandbox is not running", { hint: "start it first" });
  }

  /** For what needs a process; aborts when the sandbox stops. */
  requireAwake(): AbortSignal {
    this.requireRunning();
    if (this.message.status === SandboxStatus.RUNNING) return this.#ended.signal;
    throw new Fault("SANDBOX_PAUSED", "sandbox is paused", { hint: "resume it first" });
  }

  turnTo(status: SandboxStatus.PAUSED | SandboxStatus.RUNNING): void {
    this.requireRunning();
    if (this.message.status === status) return;
    this.message.status = status;
    this.tell(status === SandboxStatus.PAUSED ? "sandbox_paused" : "sandbox_resumed");
  }

  start(): void {
    if (this.isRunning) throw new Fault("SANDBOX_ALREADY_RUNNING", "sandbox is already running");
    this.#ended = new AbortController();
    this.message.status = SandboxStatus.RUNNING;
    this.message.startedAt = timestampNow();
    this.tell("sandbox_started", { data: { runtime: "mock" } });
  }

  /** Ends all that runs in it. */
  stop(): void {
    this.message.status = SandboxStatus.STOPPED;
    this.message.stoppedAt = timestampNow();
    this.#ended.abort();
  }

  tell(type: string, event: Pick<EventDraft, "level" | "sessionId" | "data"> = {}): void {
    const { ownerId, codebaseId } = this.message;
    this.#log.record({ type, ownerId, sandboxId: this.id, codebaseId, ...event });
  }
}

const SHELL = /^(?:\/bin\/|\/usr\/bin\/)?(bash|sh|dash|zsh)$/;

/** A shell that stays, as far as it has no state: commands that say which session they are of, one after the other. */
export class MockSession {
  readonly sandbox: MockSandbox;
  /** As clients are told of it. */
  readonly message;
  readonly #commands: Commands;
  readonly #env: Readonly<Record<string, string>>;
  readonly #workdir: string;
  readonly #ended = new AbortController();
  /** Callers take turns, first come first served. */
  readonly #turns = new Turns();

  constructor(sandbox: MockSandbox, { shell, env, workdir }: CreateSessionRequest, commands: Commands) {
    const stopped = sandbox.requireAwake();
    const name = SHELL.exec(shell || "bash")?.[1];
    if (name === undefined) throw invalid(`not a shell for sessions: ${JSON.stringify(shell)}`);
    this.sandbox = sandbox;
    this.#commands = commands;
    this.#env = env;
    this.#workdir = workingDirectory(sandbox, workdir);
    this.message = create(SessionSchema, {
      id: `sess_${randomBytes(16).toString("hex")}`,
      sandboxId: sandbox.id,
      status: SessionStatus.ACTIVE,
      shell: `/bin/${name}`,
      createdAt: timestampNow(),
    });
    stopped.addEventListener("abort", () => this.close("stopped"), { once: true });
    sandbox.tell("session_created", { sessionId: this.message.id, data: { shell: this.message.shell } });
  }

  async exec(call: Pick<MockRun, "timeoutMs" | "signal"> & { readonly command: string }): Promise<Outcome> {
    checkCommand(call.command);
    const outcome = await this.#turns.take(async () => {
      this.requireOpen();
      return await this.#commands.run({
        ...call,
        sandbox: this.sandbox,
        env: this.#env,
        workdir: this.#workdir,
        stdin: new Uint8Array(),
        timeoutSignal: "SIGINT",
        sessionId: this.message.id,
        ended: this.#ended.signal,
      });
    });
    // Closed under the command: as if it had been asked of the closed one.
    this.requireOpen();
    return outcome;
  }

  requireOpen(): void {
    const { closeReason } = this.message;
    if (closeReason === "") return;
    if (closeReason === "closed") throw new Fault("SESSION_NOT_FOUND", "session not found");
    throw new Fault("SESSION_CLOSED", `the session is closed: ${closeReason}`, { hint: "open another one" });
  }

  close(reason: "closed" | "stopped"): void {
    if (this.message.closeReason !== "") return;
    Object.assign(this.message, { closeReason: reason, status: SessionStatus.CLOSED, closedAt: timestampNow() });
    this.#ended.abort();
    this.sandbox.tell("session_closed", { sessionId: this.message.id, data: { reason } });
  }
}
