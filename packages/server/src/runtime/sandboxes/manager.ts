import type { Socket } from "node:net";
import type { Rule } from "@agentfense/permission";
import type { Caller } from "../caller.ts";
import { RuntimeError } from "../errors.ts";
import { checkSandboxId } from "../ids.ts";
import { decodePageToken, encodePageToken, type Page, type PageRequest, pageLimit } from "../page.ts";
import type { SandboxRecord, SandboxRecordStatus, SessionRecord } from "../store/store.ts";
import { KeyedTurns } from "../turns.ts";
import type {
  ApplyOutcome,
  ChangesRequest,
  CreateSandboxRequest,
  CreateSessionRequest,
  DiffRequest,
  ExecAnswer,
  ExecCall,
  ExecPart,
  Explanation,
  FileDiff,
  HomeRecord,
  SandboxChange,
  Sandboxes,
  SandboxProcessCalls,
  TerminalHandle,
  ViewEntry,
  WatchedChange,
} from "./api.ts";
import type { Changes } from "./changes.ts";
import type { Commands } from "./commands.ts";
import { newSandbox } from "./creation.ts";
import { invalid, shuttingDown, translating } from "./errors.ts";
import { explainPath } from "./explanation.ts";
import type { Homes } from "./homes.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Clock, SandboxDefaults, SandboxesOptions } from "./options.ts";
import type { Pausing } from "./pausing.ts";
import { connectPort, isFirstConnection, waitForPort } from "./ports.ts";
import { ResidentProcesses } from "./processes.ts";
import { Resident } from "./resident.ts";
import type { Residents } from "./residents.ts";
import { storedRules } from "./rules.ts";
import type { Sessions } from "./sessions.ts";
import type { SandboxFiles } from "./view-files.ts";
import type { Witness } from "./witness.ts";

export interface ManagerParts
  extends Pick<SandboxesOptions, "store" | "codebases" | "runtimes" | "fallbackRuntime" | "allowedBy"> {
  readonly defaults: SandboxDefaults;
  readonly clock: Clock;
  readonly residents: Residents;
  readonly lifecycle: Lifecycle;
  readonly pausing: Pausing;
  readonly commands: Commands;
  readonly sessions: Sessions;
  readonly changes: Changes;
  readonly files: SandboxFiles;
  readonly homes: Homes;
  readonly witness: Witness;
  /** There is a new sandbox, which may be the next to expire. */
  onCreated(): void;
}

/** How many sandboxes an error names. */
const MOST_NAMED = 10;

/** The sandboxes of all owners: finds whom a call is about and hands it to the part that does the work. */
export class SandboxManager implements Sandboxes {
  readonly #parts: ManagerParts;
  /** Who makes a sandbox and who deletes its codebase take turns. */
  readonly #codebaseTurns = new KeyedTurns();
  #closed = false;

  constructor(parts: ManagerParts) {
    this.#parts = parts;
  }

  /** From here on every call is refused. */
  shut(): void {
    this.#closed = true;
  }

  async create(caller: Caller, request: CreateSandboxRequest, signal?: AbortSignal): Promise<SandboxRecord> {
    this.#requireOpen();
    const { codebases, homes, store, residents, witness, clock, onCreated } = this.#parts;
    if (request.codebaseId === "") throw invalid("codebase_id is required");
    return await this.#codebaseTurns.take(request.codebaseId, async () => {
      const codebase = await codebases.get(caller, request.codebaseId);
      // Files of the person who runs us are written when that person says so.
      const sync = codebases.direct(codebase.id) === undefined ? this.#parts.defaults.sync : "manual";
      const defaults = { ...this.#parts.defaults, sync };
      const home = await translating(homes.admit(request.home, { id: codebase.id, version: request.codebaseVersion }));
      const record = newSandbox({ ...request, home }, codebase, { ...this.#parts, defaults, nowMs: clock() });
      if (record.codebaseVersion > 0) await codebases.getVersion(caller, codebase.id, record.codebaseVersion);
      if (signal?.aborted) throw new RuntimeError("CANCELLED", "the call was cancelled");
      const maxPerOwner = limitOf(this.#parts.defaults.maxPerOwner);
      if (!(await store.insertSandbox(record, maxPerOwner))) throw tooManySandboxes(maxPerOwner);
      const resident = new Resident(record, store);
      residents.add(resident);
      witness.tell("sandbox_created", resident, caller, { data: creationData(record) });
      onCreated();
      return record;
    });
  }

  async get(caller: Caller, id: string): Promise<SandboxRecord> {
    return this.#find(caller, id).record;
  }

  async list(
    caller: Caller,
    query: PageRequest & {
      readonly codebaseId: string;
      readonly ownerId: string;
      readonly status?: SandboxRecordStatus;
      readonly labels: Readonly<Record<string, string>>;
    },
  ): Promise<Page<SandboxRecord>> {
    this.#requireOpen();
    const after = decodePageToken(query.pageToken, isListKey);
    // Whoever asks for another owner's gets what that owner has for them: nothing.
    if (caller.ownerId !== undefined && query.ownerId !== "" && query.ownerId !== caller.ownerId) {
      return { items: [], nextPageToken: "" };
    }
    const ownerId = caller.ownerId ?? (query.ownerId === "" ? undefined : query.ownerId);
    const limit = pageLimit(query.pageSize);
    const found = await this.#parts.store.listSandboxes({
      ...(ownerId === undefined ? {} : { ownerId }),
      ...(query.codebaseId === "" ? {} : { codebaseId: query.codebaseId }),
      ...(query.status === undefined ? {} : { status: query.status }),
      ...(Object.keys(query.labels).length === 0 ? {} : { labels: query.labels }),
      ...(after === undefined ? {} : { after }),
      limit: limit + 1,
    });
    const items = found.slice(0, limit);
    const last = items.at(-1);
    return { items, nextPageToken: found.length > limit && last ? encodePageToken([last.createdAtMs, last.id]) : "" };
  }

  async start(caller: Caller, id: string, signal?: AbortSignal): Promise<SandboxRecord> {
    return await translating(this.#parts.lifecycle.start(caller, this.#find(caller, id), signal));
  }

  async stop(caller: Caller, id: string): Promise<SandboxRecord> {
    return await translating(this.#parts.lifecycle.stop(caller, this.#find(caller, id)));
  }

  async pause(caller: Caller, id: string): Promise<SandboxRecord> {
    return await translating(this.#parts.pausing.pause(caller, await this.#findReturned(caller, id)));
  }

  async resume(caller: Caller, id: string): Promise<SandboxRecord> {
    return await translating(this.#parts.pausing.resume(caller, await this.#findReturned(caller, id)));
  }

  async destroy(caller: Caller, id: string): Promise<void> {
    await translating(this.#parts.lifecycle.destroy(caller, this.#find(caller, id)));
  }

  async listHomes(caller: Caller, ownerId: string): Promise<readonly HomeRecord[]> {
    this.#requireOpen();
    return await this.#parts.homes.list(caller, ownerId);
  }

  async deleteHome(caller: Caller, ownerId: string, name: string): Promise<void> {
    this.#requireOpen();
    await translating(this.#parts.homes.delete(caller, ownerId, name));
  }

  async deleteCodebase(caller: Caller, codebaseId: string, options: { readonly force: boolean }): Promise<void> {
    this.#requireOpen();
    const { codebases, residents, lifecycle } = this.#parts;
    if (codebaseId === "") throw invalid("codebase_id is required");
    await this.#codebaseTurns.take(codebaseId, async () => {
      await codebases.get(caller, codebaseId);
      const users = residents.of(codebaseId);
      const staying = users.filter(({ departure }) => departure === undefined);
      if (staying.length > 0 && !options.force) throw inUse(staying);
      await Promise.all(
        users.map(async (resident) => {
          await (resident.departure ?? translating(lifecycle.destroy(caller, resident)));
        }),
      );
      await codebases.delete(caller, codebaseId);
    });
  }

  async exec(caller: Caller, id: string, call: ExecCall): Promise<ExecAnswer> {
    return await this.#ending(this.#parts.commands.exec(caller, await this.#findReturned(caller, id), call));
  }

  async *execStream(caller: Caller, id: string, call: ExecCall): AsyncGenerator<ExecPart> {
    yield* this.#parts.commands.execStream(caller, await this.#findReturned(caller, id), call);
  }

  async openTerminal(
    caller: Caller,
    id: string,
    request: Parameters<Sandboxes["openTerminal"]>[2],
  ): Promise<TerminalHandle> {
    return await this.#parts.commands.openTerminal(caller, await this.#findReturned(caller, id), request);
  }

  async processes(caller: Caller, id: string): Promise<SandboxProcessCalls> {
    return new ResidentProcesses(caller, await this.#findReturned(caller, id), this.#parts);
  }

  async connect(caller: Caller, id: string, port: number, signal?: AbortSignal): Promise<Socket> {
    const resident = await this.#findReturned(caller, id);
    const entered = await this.#parts.pausing.enter(caller, resident);
    const socket = await connectPort(entered, port, signal);
    if (isFirstConnection(entered, port, caller)) {
      this.#parts.witness.tell("port_opened", resident, caller, { data: { port } });
    }
    return socket;
  }

  async waitForPort(
    caller: Caller,
    id: string,
    port: number,
    options: Parameters<Sandboxes["waitForPort"]>[3],
  ): Promise<void> {
    using entered = await this.#parts.pausing.enter(caller, await this.#findReturned(caller, id));
    await waitForPort(entered, port, options);
  }

  async createSession(
    caller: Caller,
    id: string,
    request: CreateSessionRequest,
    signal?: AbortSignal,
  ): Promise<SessionRecord> {
    return await this.#parts.sessions.create(caller, await this.#findReturned(caller, id), request, signal);
  }

  async getSession(caller: Caller, sessionId: string): Promise<SessionRecord> {
    this.#requireOpen();
    return await this.#parts.sessions.get(caller, sessionId);
  }

  async listSessions(caller: Caller, id: string): Promise<readonly SessionRecord[]> {
    this.#requireOpen();
    checkSandboxId(id);
    try {
      return await this.#parts.sessions.list(this.#parts.residents.find(caller, id));
    } catch (error) {
      if (error instanceof RuntimeError && error.code === "SANDBOX_NOT_FOUND") return [];
      throw error;
    }
  }

  async destroySession(caller: Caller, sessionId: string): Promise<void> {
    this.#requireOpen();
    await this.#parts.sessions.destroy(caller, sessionId);
  }

  async sessionExec(
    caller: Caller,
    sessionId: string,
    call: Parameters<Sandboxes["sessionExec"]>[2],
  ): Promise<ExecAnswer> {
    this.#requireOpen();
    return await this.#ending(this.#parts.sessions.exec(caller, sessionId, call));
  }

  async *sessionExecStream(
    caller: Caller,
    sessionId: string,
    call: Parameters<Sandboxes["sessionExec"]>[2],
  ): AsyncGenerator<ExecPart> {
    this.#requireOpen();
    yield* this.#parts.sessions.execStream(caller, sessionId, call);
  }

  async updatePermissions(
    caller: Caller,
    id: string,
    request: { readonly rules: readonly Rule[]; readonly preset: string },
  ): Promise<SandboxRecord> {
    const rules = storedRules(request);
    const resident = this.#find(caller, id);
    return await resident.turns.take(async () => {
      resident.requirePresent();
      // In force first: a crash in between leaves the stored rules, which were in force before.
      await translating(resident.running?.sandbox.updateRules(rules) ?? Promise.resolve());
      await resident.update({ rules });
      this.#parts.witness.tell("permissions_updated", resident, caller, { data: { permissions: rules } });
      return resident.record;
    });
  }

  async explain(caller: Caller, id: string, path: string): Promise<Explanation> {
    return explainPath(this.#find(caller, id), path);
  }

  async changes(caller: Caller, id: string, page: ChangesRequest): Promise<Page<SandboxChange>> {
    return await this.#parts.changes.list(this.#find(caller, id), page);
  }

  async *diff(caller: Caller, id: string, request: DiffRequest): AsyncGenerator<FileDiff> {
    yield* this.#parts.changes.diff(this.#find(caller, id), request);
  }

  async apply(
    caller: Caller,
    id: string,
    request: { readonly paths: readonly string[]; readonly dryRun: boolean; readonly signal?: AbortSignal },
  ): Promise<{ readonly version: number; readonly outcomes: readonly ApplyOutcome[] }> {
    return await this.#parts.changes.apply(caller, this.#find(caller, id), request);
  }

  async discard(caller: Caller, id: string, paths: readonly string[]): Promise<readonly SandboxChange[]> {
    return await this.#parts.changes.discard(caller, this.#find(caller, id), paths);
  }

  async readFile(caller: Caller, id: string, path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return await this.#parts.files.read(await this.#findReturned(caller, id), path, signal);
  }

  async writeFile(
    caller: Caller,
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    options: { readonly mode: number; readonly append: boolean; readonly signal?: AbortSignal },
  ): Promise<ViewEntry> {
    return await this.#parts.files.write(caller, await this.#findReturned(caller, id), path, content, options);
  }

  async listDirectory(
    caller: Caller,
    id: string,
    path: string,
    options: { readonly recursive: boolean },
  ): Promise<readonly ViewEntry[]> {
    return await this.#parts.files.list(await this.#findReturned(caller, id), path, options);
  }

  async stat(caller: Caller, id: string, path: string): Promise<ViewEntry> {
    return await this.#parts.files.stat(await this.#findReturned(caller, id), path);
  }

  async makeDirectory(
    caller: Caller,
    id: string,
    path: string,
    options: { readonly recursive: boolean },
  ): Promise<ViewEntry> {
    return await this.#parts.files.makeDirectory(caller, await this.#findReturned(caller, id), path, options);
  }

  async remove(caller: Caller, id: string, path: string, options: { readonly recursive: boolean }): Promise<void> {
    await this.#parts.files.remove(caller, await this.#findReturned(caller, id), path, options);
  }

  async move(caller: Caller, id: string, from: string, to: string): Promise<ViewEntry> {
    return await this.#parts.files.move(caller, await this.#findReturned(caller, id), from, to);
  }

  async watch(
    caller: Caller,
    id: string,
    path: string,
    options: { readonly recursive: boolean; readonly signal?: AbortSignal },
  ): Promise<AsyncIterable<WatchedChange>> {
    return await this.#parts.files.watch(await this.#findReturned(caller, id), path, options);
  }

  #find(caller: Caller, id: string): Resident {
    this.#requireOpen();
    return this.#parts.residents.find(caller, id);
  }

  /** For what needs a running sandbox: one that ran when the last server ended is about to run again. */
  async #findReturned(caller: Caller, id: string): Promise<Resident> {
    const resident = this.#find(caller, id);
    await resident.returning;
    resident.asked();
    return resident;
  }

  /** What ended because the server does is told as that. */
  async #ending<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (this.#closed) throw shuttingDown();
      throw error;
    }
  }

  #requireOpen(): void {
    if (this.#closed) throw shuttingDown();
  }
}

/** 0 is no limit. */
function limitOf(most: number): number {
  return most > 0 ? most : Number.MAX_SAFE_INTEGER;
}

function tooManySandboxes(limit: number): RuntimeError {
  return new RuntimeError("LIMIT_EXCEEDED", `an owner has at most ${limit} sandboxes`, {
    details: { limit: String(limit) },
    hint: "destroy one first, or raise sandbox.max_per_user in the server's configuration",
  });
}

function inUse(users: readonly Resident[]): RuntimeError {
  const ids = users.slice(0, MOST_NAMED).map(({ id }) => id);
  const more = users.length > ids.length ? ` and ${users.length - ids.length} more` : "";
  return new RuntimeError("CODEBASE_IN_USE", `the codebase is in use by ${ids.join(", ")}${more}`, {
    details: { sandbox_ids: ids.join(","), count: String(users.length) },
    hint: "destroy them first, or delete with force",
  });
}

function creationData({ rules, runtime, network, sync, labels, codebaseVersion }: SandboxRecord) {
  return { permissions: rules, runtime, network, sync, labels, codebase_version: codebaseVersion };
}

function isListKey(value: unknown): value is readonly [number, string] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === "number" && typeof value[1] === "string";
}
