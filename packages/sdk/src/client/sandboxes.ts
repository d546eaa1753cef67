import type { Rule } from "@agentfense/permission";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { type Listing, paged } from "../listing.ts";
import type { CallOptions, NetworkList, RuleOptions, SandboxOptions, SandboxSecret } from "../model/options.ts";
import type {
  ApplyResult,
  Change,
  CommandEvent,
  FileDiff,
  HomeInfo,
  PathExplanation,
  RunResult,
  SandboxInfo,
  SecretInfo,
  SessionInfo,
  SnapshotInfo,
} from "../model/records.ts";
import type {
  ApplyOptions,
  ChangesOptions,
  CreateSandboxRequest,
  CreateSessionOptions,
  DiffOptions,
  ForkOptions,
  ListSandboxesOptions,
  ListSnapshotsOptions,
  OwnerOptions,
  PathsOptions,
  PutSecretOptions,
  RestoreOptions,
  SessionExecOptions,
  SessionStreamOptions,
  SnapshotOptions,
  UpdateExpiryOptions,
} from "../model/requests.ts";
import { readSecret } from "../secrets/values.ts";
import { CallStream } from "./call-stream.ts";
import { commandEvents, patienceFor, resultOf } from "./exec.ts";
import { applyResultOf, changeOf, fileDiffOf } from "./messages/codebase.ts";
import {
  createSandboxMessage,
  explanationOf,
  inheritingMessage,
  listFields,
  rulesFor,
  sandboxOf,
  secretOf,
  sessionOf,
  snapshotOf,
} from "./messages/sandbox.ts";
import { durationOf, numberFor, pageSizeOf, SANDBOX_STATUSES } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;

export class SandboxCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async create(request: CreateSandboxRequest, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.createSandbox, await createSandboxMessage(request), options));
  }

  async get(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.getSandbox, { sandboxId }, options));
  }

  list(options: ListSandboxesOptions = {}): Listing<SandboxInfo> {
    const { codebaseId = "", ownerId = "", status, labels, pageSize, signal } = options;
    return paged(async (pageToken) => {
      const filter = {
        codebaseId,
        ownerId,
        status: numberFor(SANDBOX_STATUSES, status, "status"),
        labels: { ...labels },
      };
      const request = { ...filter, pageSize: pageSizeOf(pageSize), pageToken };
      const page = await this.#rpc.unary(method.listSandboxes, request, { signal });
      return { items: page.sandboxes.map(sandboxOf), nextPageToken: page.nextPageToken };
    });
  }

  async start(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.startSandbox, { sandboxId }, options));
  }

  async stop(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.stopSandbox, { sandboxId }, options));
  }

  async pause(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.pauseSandbox, { sandboxId }, options));
  }

  async resume(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.resumeSandbox, { sandboxId }, options));
  }

  async destroy(sandboxId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.destroySandbox, { sandboxId }, options);
  }

  async createFromSnapshot(snapshotId: string, options: SandboxOptions = {}): Promise<SandboxInfo> {
    const request = { ...(await inheritingMessage(options)), snapshotId };
    return sandboxOf(await this.#rpc.unary(method.createSandbox, request));
  }

  async snapshot(sandboxId: string, { label = "", signal }: SnapshotOptions = {}): Promise<SnapshotInfo> {
    return snapshotOf(await this.#rpc.unary(method.snapshotSandbox, { sandboxId, label }, { signal }));
  }

  async listSnapshots(options: ListSnapshotsOptions = {}): Promise<SnapshotInfo[]> {
    const { sandboxId = "", ownerId = "", signal } = options;
    const { snapshots } = await this.#rpc.unary(method.listSnapshots, { sandboxId, ownerId }, { signal });
    return snapshots.map(snapshotOf);
  }

  async restore(
    sandboxId: string,
    snapshotId: string,
    { processes = "end", signal }: RestoreOptions = {},
  ): Promise<SandboxInfo> {
    const request = { sandboxId, snapshotId, onlyIdle: processes === "refuse" };
    return sandboxOf(await this.#rpc.unary(method.restoreSandbox, request, { signal }));
  }

  async deleteSnapshot(snapshotId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.deleteSnapshot, { snapshotId }, options);
  }

  async fork(
    sandboxId: string,
    { count = 1, snapshotId = "", signal, ...own }: ForkOptions = {},
  ): Promise<SandboxInfo[]> {
    const request = { sandboxId, snapshotId, count, settings: await inheritingMessage(own) };
    return (await this.#rpc.unary(method.forkSandbox, request, { signal })).sandboxes.map(sandboxOf);
  }

  async listHomes({ ownerId = "", ...options }: OwnerOptions = {}): Promise<HomeInfo[]> {
    const { homes } = await this.#rpc.unary(method.listHomes, { ownerId }, options);
    return homes.map((home) => ({ name: home.name, ownerId: home.ownerId, sandboxId: home.sandboxId }));
  }

  async deleteHome(name: string, { ownerId = "", ...options }: OwnerOptions = {}): Promise<void> {
    await this.#rpc.unary(method.deleteHome, { name, ownerId }, options);
  }

  async putSecret(name: string, { ownerId = "", signal, ...secret }: PutSecretOptions): Promise<SecretInfo> {
    const request = { ...(await readSecret(name, secret as SandboxSecret)), ownerId };
    return secretOf(await this.#rpc.unary(method.putSecret, request, { signal }));
  }

  async listSecrets({ ownerId = "", ...options }: OwnerOptions = {}): Promise<SecretInfo[]> {
    return (await this.#rpc.unary(method.listSecrets, { ownerId }, options)).secrets.map(secretOf);
  }

  async deleteSecret(name: string, { ownerId = "", ...options }: OwnerOptions = {}): Promise<void> {
    await this.#rpc.unary(method.deleteSecret, { name, ownerId }, options);
  }

  async updatePermissions(
    sandboxId: string,
    rules: RuleOptions | readonly Rule[],
    options?: CallOptions,
  ): Promise<SandboxInfo> {
    const permissions = rulesFor(isList(rules) ? { permissions: rules } : rules);
    return sandboxOf(await this.#rpc.unary(method.updatePermissions, { sandboxId, permissions }, options));
  }

  async updateNetwork(sandboxId: string, network: NetworkList, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.updateNetwork, { sandboxId, ...listFields(network) }, options));
  }

  async updateExpiry(
    sandboxId: string,
    expiresInMs: number,
    { extendOnly = false, signal }: UpdateExpiryOptions = {},
  ): Promise<SandboxInfo> {
    const request = { sandboxId, expiresIn: durationOf(expiresInMs, "expiresInMs"), extendOnly };
    return sandboxOf(await this.#rpc.unary(method.updateExpiry, request, { signal }));
  }

  async explainPath(sandboxId: string, path: string, options?: CallOptions): Promise<PathExplanation> {
    return explanationOf(await this.#rpc.unary(method.explainPath, { sandboxId, path }, options));
  }
}

/** Array.isArray knows nothing of lists that are read-only. */
function isList(rules: RuleOptions | readonly Rule[]): rules is readonly Rule[] {
  return Array.isArray(rules);
}

/** Without a size the server answers with all of them in one message, which a long list does not fit into. */
const CHANGES_A_PAGE = 1000;

/**
 * | paths     | stand for              |
 * | --------- | ---------------------- |
 * | absent    | everything             |
 * | empty     | nothing                |
 * | some      | each with all below it |
 *
 * On the wire none means everything, so an empty list must not get there: it is what is left of a review that approved nothing.
 */
export class ChangeCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  list(sandboxId: string, options: ChangesOptions = {}): Listing<Change> {
    const { pageSize = CHANGES_A_PAGE, fold = false, signal } = options;
    return paged(async (pageToken) => {
      const request = { sandboxId, pageSize: pageSizeOf(pageSize), pageToken, fold };
      const page = await this.#rpc.unary(method.listChanges, request, { signal });
      return { items: page.changes.map(changeOf), nextPageToken: page.nextPageToken };
    });
  }

  diff(sandboxId: string, { paths, patch = false, signal }: DiffOptions = {}): CallStream<FileDiff> {
    if (paths?.length === 0) return CallStream.empty();
    return this.#rpc
      .serverStream(method.diffChanges, { sandboxId, paths: wirePaths(paths), patch }, { signal })
      .gather(({ more }) => more, fileDiffOf);
  }

  async apply(sandboxId: string, options: ApplyOptions = {}): Promise<ApplyResult> {
    const { paths, dryRun = false, holdExecutables = false, signal } = options;
    if (paths?.length === 0) return { version: 0, outcomes: [] };
    const request = { sandboxId, paths: wirePaths(paths), dryRun, holdExecutables };
    return applyResultOf(await this.#rpc.unary(method.applyChanges, request, { signal }));
  }

  async discard(sandboxId: string, { paths, signal }: PathsOptions = {}): Promise<Change[]> {
    if (paths?.length === 0) return [];
    const request = { sandboxId, paths: wirePaths(paths) };
    const { discarded } = await this.#rpc.unary(method.discardChanges, request, { signal });
    return discarded.map(changeOf);
  }
}

function wirePaths(paths: readonly string[] | undefined): string[] {
  return [...(paths ?? [])];
}

export class SessionCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async create(sandboxId: string, options: CreateSessionOptions = {}): Promise<SessionInfo> {
    const { shell = "", env, workdir = "", idleTimeoutMs, signal } = options;
    const request = {
      sandboxId,
      shell,
      env: { ...env },
      workdir,
      ...(idleTimeoutMs === undefined ? {} : { idleTimeout: durationOf(idleTimeoutMs, "idleTimeoutMs") }),
    };
    return sessionOf(await this.#rpc.unary(method.createSession, request, { signal }));
  }

  async get(sessionId: string, options?: CallOptions): Promise<SessionInfo> {
    return sessionOf(await this.#rpc.unary(method.getSession, { sessionId }, options));
  }

  async list(sandboxId: string, options?: CallOptions): Promise<SessionInfo[]> {
    const { sessions } = await this.#rpc.unary(method.listSessions, { sandboxId }, options);
    return sessions.map(sessionOf);
  }

  async destroy(sessionId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.destroySession, { sessionId }, options);
  }

  async exec(sessionId: string, command: string, options: SessionExecOptions = {}): Promise<RunResult> {
    const { signal, timeoutMs } = options;
    const request = sessionExecMessage(sessionId, command, timeoutMs);
    const call = this.#rpc.unary(method.sessionExec, request, { signal, timeoutMs: patienceFor(timeoutMs) });
    return await resultOf(call, command, options);
  }

  execStream(
    sessionId: string,
    command: string,
    { signal, timeoutMs }: SessionStreamOptions = {},
  ): CallStream<CommandEvent> {
    const request = sessionExecMessage(sessionId, command, timeoutMs);
    const options = { signal, timeoutMs: patienceFor(timeoutMs) };
    return commandEvents(this.#rpc.serverStream(method.sessionExecStream, request, options), command);
  }
}

function sessionExecMessage(sessionId: string, command: string, timeoutMs: number | undefined) {
  return { sessionId, command, ...(timeoutMs === undefined ? {} : { timeout: durationOf(timeoutMs, "timeoutMs") }) };
}
