import type { ErrorCode } from "@agentfense/protocol";
import type { CreateSandboxRequest, CreateSessionRequest } from "@agentfense/protocol/sandbox";
import { MockCodebase } from "./codebase.ts";
import { Commands } from "./commands.ts";
import { EventLog } from "./events.ts";
import { Fault } from "./faults.ts";
import type { CommandScript } from "./mock-command.ts";
import { MockSandbox, MockSession } from "./sandbox.ts";
import { syncAfterCommand } from "./sync.ts";

/** Everything there is in a mock engine, in memory. */
export class World {
  readonly log = new EventLog();
  readonly commands: Commands;
  readonly codebases = new Map<string, MockCodebase>();
  readonly sandboxes = new Map<string, MockSandbox>();
  readonly sessions = new Map<string, MockSession>();

  constructor(script: CommandScript) {
    this.commands = new Commands(script);
  }

  createCodebase(facts: { readonly name: string; readonly ownerId: string }): MockCodebase {
    const codebase = new MockCodebase(facts);
    this.codebases.set(codebase.message.id, codebase);
    this.tellOf(codebase, "codebase_created");
    return codebase;
  }

  codebase(id: string): MockCodebase {
    return found(this.codebases, id, "CODEBASE_NOT_FOUND");
  }

  deleteCodebase(codebase: MockCodebase, options: { readonly force: boolean }): void {
    const users = [...this.sandboxes.values()].filter((sandbox) => sandbox.codebase === codebase);
    if (users.length > 0 && !options.force) {
      const ids = users.map(({ id }) => id);
      throw new Fault("CODEBASE_IN_USE", `the codebase is in use by ${ids.join(", ")}`, {
        details: { sandbox_ids: ids.join(","), count: String(ids.length) },
        hint: "destroy them first, or delete with force",
      });
    }
    for (const sandbox of users) this.destroySandbox(sandbox);
    this.codebases.delete(codebase.message.id);
    this.tellOf(codebase, "codebase_deleted");
  }

  createSandbox(request: CreateSandboxRequest): MockSandbox {
    const sandbox = new MockSandbox(this.codebase(request.codebaseId), request, this.log);
    this.sandboxes.set(sandbox.id, sandbox);
    sandbox.tell("sandbox_created", { data: { permissions: sandbox.rules, runtime: "mock", labels: request.labels } });
    return sandbox;
  }

  sandbox(id: string): MockSandbox {
    return found(this.sandboxes, id, "SANDBOX_NOT_FOUND");
  }

  stopSandbox(sandbox: MockSandbox): void {
    sandbox.requireRunning();
    sandbox.stop();
    syncAfterCommand(sandbox);
    sandbox.tell("sandbox_stopped");
  }

  destroySandbox(sandbox: MockSandbox): void {
    this.sandboxes.delete(sandbox.id);
    sandbox.isDestroyed = true;
    if (sandbox.isRunning) sandbox.stop();
    for (const { message } of this.sessionsOf(sandbox.id)) this.sessions.delete(message.id);
    sandbox.tell("sandbox_destroyed");
  }

  openSession(request: CreateSessionRequest): MockSession {
    const session = new MockSession(this.sandbox(request.sandboxId), request, this.commands);
    this.sessions.set(session.message.id, session);
    return session;
  }

  /** One that its client closed is as unknown as one that never was. */
  session(id: string): MockSession {
    return found(this.sessions, id, "SESSION_NOT_FOUND");
  }

  sessionsOf(sandboxId: string): MockSession[] {
    return [...this.sessions.values()].filter(({ sandbox }) => sandbox.id === sandboxId);
  }

  /** Ends all that runs; nothing is waited for. */
  end(): void {
    for (const sandbox of [...this.sandboxes.values()]) this.destroySandbox(sandbox);
    this.codebases.clear();
  }

  tellOf({ message }: MockCodebase, type: string, data: Readonly<Record<string, unknown>> = {}): void {
    const { ownerId, id: codebaseId, name } = message;
    this.log.record({ type, ownerId, codebaseId, data: { name, ...data } });
  }
}

function found<Thing>(things: ReadonlyMap<string, Thing>, id: string, code: ErrorCode): Thing {
  const thing = things.get(id);
  if (thing !== undefined) return thing;
  throw new Fault(code, code.toLowerCase().replaceAll("_", " "));
}
