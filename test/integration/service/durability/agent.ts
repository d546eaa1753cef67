import type { Random } from "../../../conformance/model/random.ts";
import type { Message, ServiceName } from "../../../support/grpc-client.ts";
import { Box, type Status, type SyncMode, type Uncertainty } from "./box.ts";
import type { Testimony } from "./events.ts";
import type { Change, CodebaseHistory } from "./history.ts";
import type { Line, Outcome } from "./line.ts";
import { type Entry, fileOf, type Manifest, withEntry, without } from "./manifest.ts";

const SERVICE: ServiceName = "SandboxService";

/** A client with one sandbox at a time, which it uses at random: commands, sessions, files, rules, stop and start. */
export class Agent {
  readonly #random: Random;
  readonly #codebase: CodebaseHistory;
  readonly #testimony: Testimony;
  readonly #sync: SyncMode;
  readonly #boxes: Set<Box>;
  /** Labels of sandboxes whose creation is uncertain. */
  readonly #lostCreations: Set<string>;
  #box: Box | undefined;
  #session: string | undefined;

  constructor(options: {
    readonly random: Random;
    readonly codebase: CodebaseHistory;
    readonly testimony: Testimony;
    readonly sync: SyncMode;
    readonly boxes: Set<Box>;
    readonly lostCreations: Set<string>;
  }) {
    this.#random = options.random;
    this.#codebase = options.codebase;
    this.#testimony = options.testimony;
    this.#sync = options.sync;
    this.#boxes = options.boxes;
    this.#lostCreations = options.lostCreations;
  }

  async run(line: Line): Promise<void> {
    this.#session = undefined; // no session outlives a server
    while (!line.isCut) {
      const box = this.#box;
      if (box === undefined || !this.#boxes.has(box)) await this.#create(line);
      else if (!box.statuses.has("RUNNING")) await this.#start(line, box);
      else await this.#work(line, box);
    }
  }

  async #work(line: Line, box: Box): Promise<void> {
    const isManual = this.#sync === "SYNC_MODE_MANUAL";
    const action = this.#random.weighted({
      write: 10,
      rename: isManual && box.files.size > 0 ? 3 : 0,
      remove: isManual && box.files.size > 0 ? 2 : 0,
      writeFile: isManual ? 3 : 0,
      apply: isManual ? 3 : 0,
      session: 2,
      rules: 2,
      stop: 1,
      destroy: 1,
    });
    await this[action](line, box);
  }

  write(line: Line, box: Box): Promise<void> {
    const path = box.path(this.#name());
    const scratch = box.path("scratch");
    const content = this.#content();
    const command = `cat > ${scratch} && mv ${scratch} ${path} # ${this.#random.below(2 ** 30)}`;
    const becoming = new Map([[path, fileOf(content)]]);
    return this.#exec(line, box, { command, stdin: content }, { becoming, scratch: [scratch] });
  }

  rename(line: Line, box: Box): Promise<void> {
    const [from, entry] = this.#random.pick([...box.files]);
    const to = box.path(this.#name());
    if (from === to) return Promise.resolve();
    const becoming = new Map<string, Entry | undefined>([
      [to, entry],
      [from, undefined],
    ]);
    const command = `mv ${from} ${to} # ${this.#random.below(2 ** 30)}`;
    return this.#exec(line, box, { command }, { becoming, scratch: [], move: { from, to } });
  }

  remove(line: Line, box: Box): Promise<void> {
    const [path] = this.#random.pick([...box.files]);
    const command = `rm ${path} # ${this.#random.below(2 ** 30)}`;
    return this.#exec(line, box, { command }, { becoming: new Map([[path, undefined]]), scratch: [] });
  }

  /** Through the view, by the API; in place, as a process would. */
  async writeFile(line: Line, box: Box): Promise<void> {
    const path = box.path(this.#name());
    const content = this.#content();
    const messages = [{ metadata: { sandbox_id: box.id, path } }, { data: Buffer.from(content) }];
    const outcome = await line.attempt(`write ${path}`, () => line.client.send(SERVICE, "WriteFile", messages));
    if (outcome.is === "lost") box.uncertainty = { change: undefined, becoming: new Map(), scratch: [path] };
    if (outcome.is !== "acknowledged") return;
    box.changed(new Map([[path, fileOf(content, Number(outcome.answer.mode))]]));
    this.#testimony.expect({ type: "file_written", sandboxId: box.id, data: { path: `/workspace/${path}` } });
  }

  async apply(line: Line, box: Box): Promise<void> {
    const delta = new Map(box.delta);
    const change = this.#change(box, "apply", "changes_applied", delta);
    const outcome = await line.call(SERVICE, "ApplyChanges", { sandbox_id: box.id });
    if (outcome.is === "lost") box.uncertainty = { change, becoming: new Map(), scratch: [] };
    if (outcome.is === "acknowledged" && Number(outcome.answer.version) === 0) return;
    box.codebase.record(change, outcome, ({ version }) => version);
    if (outcome.is === "acknowledged") box.delta.clear();
  }

  async session(line: Line, box: Box): Promise<void> {
    if (this.#session === undefined) {
      const outcome = await line.call(SERVICE, "CreateSession", { sandbox_id: box.id });
      if (outcome.is !== "acknowledged") return;
      this.#session = String(outcome.answer.id);
      box.sessions.add(this.#session);
      this.#testimony.expect({ type: "session_created", sandboxId: box.id, sessionId: this.#session });
      return;
    }
    const session = this.#session;
    if (this.#random.chance(60)) {
      const path = box.path(this.#name());
      const scratch = box.path("scratch");
      const content = this.#random.text(this.#random.between(1, 300));
      const command = `printf %s ${content} > ${scratch} && mv ${scratch} ${path}`;
      const uncertainty = { becoming: new Map([[path, fileOf(content)]]), scratch: [scratch] };
      await this.#command(line, box, "SessionExec", { session_id: session, command }, uncertainty);
      return;
    }
    const outcome = await line.call(SERVICE, "DestroySession", { session_id: session });
    this.#session = undefined;
    box.sessions.delete(session);
    if (outcome.is !== "acknowledged") return;
    box.closedSessions.add(session);
    this.#testimony.expect({ type: "session_closed", sandboxId: box.id, sessionId: session });
  }

  async rules(line: Line, box: Box): Promise<void> {
    const rules = permissions(this.#random.below(1000));
    const outcome = await line.call(SERVICE, "UpdatePermissions", { sandbox_id: box.id, permissions: rules });
    if (outcome.is === "lost") box.permissions = [...box.permissions, rules];
    if (outcome.is !== "acknowledged") return;
    box.permissions = [outcome.answer.permissions as Message[]];
    this.#testimony.expect({ type: "permissions_updated", sandboxId: box.id });
  }

  stop(line: Line, box: Box): Promise<void> {
    this.#session = undefined;
    return this.#move(line, box, "StopSandbox", "STOPPED", "sandbox_stopped");
  }

  #start(line: Line, box: Box): Promise<void> {
    return this.#move(line, box, "StartSandbox", "RUNNING", "sandbox_started");
  }

  async destroy(line: Line, box: Box): Promise<void> {
    this.#session = undefined;
    this.#box = undefined;
    const outcome = await line.call(SERVICE, "DestroySandbox", { sandbox_id: box.id });
    if (outcome.is !== "refused") box.destruction = outcome.is;
    if (outcome.is === "acknowledged") this.#testimony.expect({ type: "sandbox_destroyed", sandboxId: box.id });
  }

  async #create(line: Line): Promise<void> {
    this.#session = undefined;
    const label = `creation-${this.#random.below(2 ** 30)}`;
    const request = {
      codebase_id: this.#codebase.id,
      permissions: permissions(0),
      sync: this.#sync,
      labels: { label },
    };
    const outcome = await line.call(SERVICE, "CreateSandbox", request);
    if (outcome.is === "lost") this.#lostCreations.add(label);
    if (outcome.is !== "acknowledged") return;
    const { id, permissions: rules } = outcome.answer;
    this.#box = new Box(String(id), this.#codebase, this.#sync, rules as Message[]);
    this.#boxes.add(this.#box);
    this.#testimony.expect({ type: "sandbox_created", sandboxId: this.#box.id });
  }

  async #move(line: Line, box: Box, method: string, to: Status, event: string): Promise<void> {
    const outcome = await line.call(SERVICE, method, { sandbox_id: box.id });
    if (outcome.is === "lost") box.statuses = new Set([...box.statuses, to]);
    if (outcome.is !== "acknowledged") return;
    box.statuses = new Set([to]);
    this.#testimony.expect({ type: event, sandboxId: box.id });
  }

  #exec(line: Line, box: Box, request: Message, effect: Omit<Uncertainty, "change">): Promise<void> {
    return this.#command(line, box, "Exec", { sandbox_id: box.id, ...request }, effect);
  }

  async #command(
    line: Line,
    box: Box,
    method: "Exec" | "SessionExec",
    request: Message,
    effect: Omit<Uncertainty, "change">,
  ): Promise<void> {
    const change = this.#change(box, String(request.command), "sync_completed", effect.becoming);
    const outcome = await line.call(SERVICE, method, request);
    const syncs = box.sync === "SYNC_MODE_ON_EXEC";
    if (outcome.is === "lost") box.uncertainty = { ...effect, change: syncs ? change : undefined };
    if (outcome.is === "acknowledged") this.#checkResult(outcome, request);
    if (syncs) {
      box.codebase.record(change, outcome, ({ synced_version: version }) => version);
    } else if (outcome.is === "acknowledged") {
      box.changed(effect.becoming);
    }
    if (outcome.is !== "acknowledged") return;
    const command = { type: "command_executed", sandboxId: box.id, data: { command: request.command } };
    this.#testimony.expect(method === "Exec" ? command : { ...command, sessionId: String(request.session_id) });
  }

  #checkResult(outcome: Outcome & { is: "acknowledged" }, request: Message): void {
    const { exit_code: code, stderr, sync_problems: problems, synced_version: version } = outcome.answer;
    const isSynced = this.#sync === "SYNC_MODE_MANUAL" || Number(version) > 0;
    if (code === 0 && (problems as string[]).length === 0 && isSynced) return;
    throw new Error(
      `${request.command}: exit code ${code}, version ${version}: ${stderr}${(problems as string[]).join("; ")}`,
    );
  }

  #change(box: Box, what: string, event: string, effects: ReadonlyMap<string, Entry | undefined>): Change {
    return {
      what: `${box.id}: ${what}`,
      event: { type: event, sandboxId: box.id },
      apply(before) {
        let after: Manifest = before;
        for (const [path, entry] of effects) {
          after = entry === undefined ? without(after, path) : withEntry(after, path, entry);
        }
        return after;
      },
    };
  }

  #name(): string {
    return `f${this.#random.below(8)}`;
  }

  #content(): string {
    const size = this.#random.pick([0, 100, 5000, this.#random.below(150_000)]);
    return `${this.#random.below(2 ** 30)} `.padEnd(size, this.#random.text(50));
  }
}

/** Everything writable but something that nobody has; `variant` tells one set from another. */
function permissions(variant: number): readonly Message[] {
  return [
    { pattern: "**", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_WRITE", priority: 0 },
    { pattern: `/hidden-${variant}/**`, type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_NONE", priority: 5 },
  ];
}
