import { AuditLog } from "./audit-log.ts";
import { Codebase, type VersionRecord } from "./codebases/codebase.ts";
import type { Wanted } from "./codebases/draft.ts";
import { Fault, invalid } from "./faults.ts";
import type { GuardedView } from "./files/guarded-view.ts";
import { KeyRing } from "./keys.ts";
import type { CommandScript, MockCommand } from "./mock-command.ts";
import { Commands } from "./sandboxes/commands.ts";
import { MockSandbox, type SandboxFacts, scratch } from "./sandboxes/sandbox.ts";
import { MockSession, type SessionRequest } from "./sandboxes/session.ts";
import { syncAfterCommand } from "./sandboxes/sync.ts";

/** The longest a timer can run. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Everything there is in a mock engine, in memory. */
export class World {
  readonly audit = new AuditLog();
  readonly keys = new KeyRing();
  readonly calls: MockCommand[] = [];
  readonly commands: Commands;
  readonly codebases = new Map<string, Codebase>();
  readonly sandboxes = new Map<string, MockSandbox>();
  readonly sessions = new Map<string, MockSession>();
  /** Homes that outlive sandboxes, by owner and name. */
  readonly homes = new Map<string, { readonly name: string; readonly ownerId: string; readonly view: GuardedView }>();
  readonly #expiries = new Map<MockSandbox, NodeJS.Timeout>();

  constructor(script: CommandScript) {
    this.commands = new Commands(script, (command) => this.calls.push(command));
  }

  createCodebase(facts: { readonly name: string; readonly ownerId: string }): Codebase {
    const codebase = new Codebase(facts, (changed, version) => this.#announce(changed, version));
    this.codebases.set(codebase.id, codebase);
    this.tellOf(codebase, "codebase_created", { name: codebase.name });
    return codebase;
  }

  /** One that has these files from the start. */
  fillCodebase(facts: { readonly name: string; readonly ownerId: string }, files: readonly Wanted[]): Codebase {
    const codebase = this.createCodebase(facts);
    codebase.change({ origin: "upload" }, (draft) => draft.fulfil(files, { replaceAll: false }));
    return codebase;
  }

  codebase(id: string): Codebase {
    if (id === "") throw invalid("codebase_id is required", { field: "codebase_id" });
    const codebase = this.codebases.get(checkId(id, "codebase_id", "cb"));
    if (codebase === undefined) throw new Fault("CODEBASE_NOT_FOUND", "codebase not found");
    return codebase;
  }

  deleteCodebase(id: string, options: { readonly force: boolean }): void {
    const codebase = this.codebase(id);
    const users = [...this.sandboxes.values()].filter((sandbox) => sandbox.codebase === codebase);
    if (users.length > 0 && !options.force) {
      const ids = users.map((sandbox) => sandbox.id);
      throw new Fault("CODEBASE_IN_USE", `the codebase is in use by ${ids.join(", ")}`, {
        details: { sandbox_ids: ids.join(","), count: String(ids.length) },
        hint: "destroy them first, or delete with force",
      });
    }
    for (const sandbox of users) this.destroySandbox(sandbox);
    this.codebases.delete(id);
    this.tellOf(codebase, "codebase_deleted", { name: codebase.name, version: codebase.version });
  }

  createSandbox(codebase: Codebase, facts: SandboxFacts): MockSandbox {
    const sandbox = new MockSandbox(codebase, facts, this.audit, this.#homeFor(codebase.ownerId, facts.home));
    this.sandboxes.set(sandbox.id, sandbox);
    const { rules, labels, network, networkRules, sync, codebaseVersion } = facts;
    const list = network === "filtered" ? { network_rules: networkRules } : {};
    sandbox.tell("sandbox_created", {
      data: { permissions: rules, runtime: "mock", network, ...list, sync, labels, codebase_version: codebaseVersion },
    });
    if (facts.expiresInMs !== undefined) this.#expireIn(sandbox, facts.expiresInMs);
    return sandbox;
  }

  sandbox(id: string): MockSandbox {
    if (id === "") throw invalid("sandbox_id is required", { field: "sandbox_id" });
    const sandbox = this.sandboxes.get(checkId(id, "sandbox_id", "sb"));
    if (sandbox === undefined) throw new Fault("SANDBOX_NOT_FOUND", "sandbox not found");
    return sandbox;
  }

  startSandbox(sandbox: MockSandbox): void {
    const { facts, ownerId } = sandbox;
    if (facts.home !== "") this.#requireFree(facts.home, ownerId);
    sandbox.start();
    sandbox.tell("sandbox_started", { data: { runtime: "mock" } });
  }

  /** The sandbox that runs with a home. */
  userOf(home: string, ownerId: string): MockSandbox | undefined {
    const isUser = (one: MockSandbox) => one.facts.home === home && one.ownerId === ownerId && one.status === "running";
    return [...this.sandboxes.values()].find(isUser);
  }

  deleteHome(name: string, ownerId: string): void {
    const key = keyOf(ownerId, name);
    if (!this.homes.has(key)) throw new Fault("HOME_NOT_FOUND", "home not found");
    this.#requireFree(name, ownerId);
    this.homes.delete(key);
  }

  stopSandbox(sandbox: MockSandbox): void {
    sandbox.stop();
    syncAfterCommand(sandbox);
    sandbox.tell("sandbox_stopped");
  }

  destroySandbox(sandbox: MockSandbox): void {
    clearTimeout(this.#expiries.get(sandbox));
    this.#expiries.delete(sandbox);
    this.sandboxes.delete(sandbox.id);
    sandbox.isDestroyed = true;
    if (sandbox.status === "running" || sandbox.status === "paused") sandbox.stop();
    for (const session of this.sessionsOf(sandbox)) this.sessions.delete(session.id);
    sandbox.tell("sandbox_destroyed");
  }

  openSession(sandbox: MockSandbox, request: SessionRequest): MockSession {
    const session = new MockSession(sandbox, request, this.commands);
    this.sessions.set(session.id, session);
    return session;
  }

  /** One that its client closed is as unknown as one that never was. */
  session(id: string): MockSession {
    if (id === "") throw invalid("session_id is required", { field: "session_id" });
    const session = this.sessions.get(checkId(id, "session_id", "sess"));
    if (session === undefined) throw new Fault("SESSION_NOT_FOUND", "session not found");
    return session;
  }

  sessionsOf(sandbox: MockSandbox): MockSession[] {
    return [...this.sessions.values()].filter((session) => session.sandbox === sandbox);
  }

  destroySession(session: MockSession): void {
    if (session.closeReason !== "") return;
    session.close("closed");
    this.sessions.delete(session.id);
  }

  tellOf(codebase: Codebase, type: string, data: Readonly<Record<string, unknown>>): void {
    this.audit.record({ type, ownerId: codebase.ownerId, codebaseId: codebase.id, data });
  }

  /** Ends all that runs; nothing is waited for. */
  end(): void {
    for (const sandbox of [...this.sandboxes.values()]) this.destroySandbox(sandbox);
    this.codebases.clear();
  }

  #requireFree(home: string, ownerId: string): void {
    const user = this.userOf(home, ownerId);
    if (user === undefined) return;
    throw new Fault("HOME_IN_USE", `the home ${home} is in use by the sandbox ${user.id}`, {
      details: { sandbox_id: user.id },
      hint: "stop that sandbox first, or use another home",
    });
  }

  #homeFor(ownerId: string, name: string): GuardedView {
    if (name === "") return scratch();
    const key = keyOf(ownerId, name);
    const home = this.homes.get(key) ?? { name, ownerId, view: scratch() };
    this.homes.set(key, home);
    return home.view;
  }

  /** Uploads and other sandboxes' syncs show at once, unless the sandbox has its own version. */
  #announce(codebase: Codebase, { changes, sandboxId }: VersionRecord): void {
    for (const sandbox of this.sandboxes.values()) {
      const isShown = sandbox.codebase === codebase && sandbox.facts.codebaseVersion === 0 && sandbox.id !== sandboxId;
      if (!isShown) continue;
      for (const { path, before, after } of changes) {
        const kind = before === undefined || after === undefined ? "rename" : "change";
        if (!sandbox.overlay.shadows(path)) sandbox.announce(path, kind);
      }
    }
  }

  #expireIn(sandbox: MockSandbox, ms: number): void {
    const timer = setTimeout(
      () => {
        sandbox.tell("sandbox_expired");
        this.destroySandbox(sandbox);
      },
      Math.min(ms, LONGEST_TIMER_MS),
    );
    timer.unref();
    this.#expiries.set(sandbox, timer);
  }
}

const KINDS = { cb: "a codebase", sb: "a sandbox", sess: "a session" } as const;

function checkId(id: string, field: string, prefix: keyof typeof KINDS): string {
  if (new RegExp(`^${prefix}_[0-9a-f]{16,64}$`).test(id)) return id;
  throw invalid(`${field} is not the id of ${KINDS[prefix]}: ${prefix}_ and hexadecimal digits`);
}

function keyOf(ownerId: string, name: string): string {
  return JSON.stringify([ownerId, name]);
}
