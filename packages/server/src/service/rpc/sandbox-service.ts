import { CreateSandboxRequestSchema, type SandboxService, type SessionExecRequest } from "@agentfense/protocol/sandbox";
import { create } from "@bufbuild/protobuf";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { Secrets } from "../../runtime/secrets/api.ts";
import { codeHandlers } from "./code-handlers.ts";
import { fileHandlers } from "./codebase-service.ts";
import { execHandlers, execOutputs, execResult, type MessageLimits } from "./exec-handlers.ts";
import type { Handlers, SandboxHandlers } from "./handlers.ts";
import { durationMs, invalid, required, wordFor } from "./messages/fields.ts";
import {
  changeMessage,
  createSandboxRequestOf,
  diffMessages,
  explanationMessage,
  networkListOf,
  outcomeMessage,
  rulesOf,
  SANDBOX_STATUSES,
  sandboxMessage,
  secretMessage,
  sessionMessage,
  snapshotMessage,
} from "./messages/sandbox.ts";
import { portHandlers } from "./port-handlers.ts";
import { processHandlers, terminalHandlers } from "./process-handlers.ts";
import type { ServiceRuntime } from "./register.ts";

/** The service in parts: here is what one does to a sandbox, with its sessions and its changes. */
export function sandboxHandlers(
  { sandboxes, secrets, links }: Pick<ServiceRuntime, "sandboxes" | "secrets" | "links">,
  limits: MessageLimits,
): Handlers<typeof SandboxService> {
  return {
    ...lifecycleHandlers(sandboxes),
    ...execHandlers(sandboxes, limits),
    ...sessionHandlers(sandboxes, limits),
    ...terminalHandlers(sandboxes),
    ...processHandlers(sandboxes),
    ...codeHandlers(sandboxes, limits),
    ...portHandlers(sandboxes, links),
    ...secretHandlers(secrets),
    ...changeHandlers(sandboxes, limits),
    ...fileHandlers(sandboxes),
  };
}

function lifecycleHandlers(sandboxes: Sandboxes) {
  return {
    async createSandbox(message, { caller, signal }) {
      const { snapshotId } = message;
      if (snapshotId === "") required(message.codebaseId, "codebase_id");
      const request = createSandboxRequestOf(message);
      if (snapshotId === "") return sandboxMessage(await sandboxes.create(caller, request, signal));
      return sandboxMessage(await sandboxes.createFrom(caller, snapshotId, request, signal));
    },

    getSandbox: async ({ sandboxId }, { caller }) => sandboxMessage(await sandboxes.get(caller, sandboxId)),

    async listSandboxes({ codebaseId, ownerId, status, labels, pageSize, pageToken }, { caller }) {
      const wanted = wordFor(SANDBOX_STATUSES, status, "status");
      const query = { codebaseId, ownerId, labels, pageSize, pageToken, status: wanted };
      const page = await sandboxes.list(caller, query);
      return { sandboxes: page.items.map(sandboxMessage), nextPageToken: page.nextPageToken };
    },

    startSandbox: async ({ sandboxId }, { caller, signal }) =>
      sandboxMessage(await sandboxes.start(caller, sandboxId, signal)),
    stopSandbox: async ({ sandboxId }, { caller }) => sandboxMessage(await sandboxes.stop(caller, sandboxId)),
    pauseSandbox: async ({ sandboxId }, { caller }) => sandboxMessage(await sandboxes.pause(caller, sandboxId)),
    resumeSandbox: async ({ sandboxId }, { caller }) => sandboxMessage(await sandboxes.resume(caller, sandboxId)),

    destroySandbox: ({ sandboxId }, { caller }) => sandboxes.destroy(caller, sandboxId),

    updatePermissions: async ({ sandboxId, permissions, preset }, { caller }) =>
      sandboxMessage(await sandboxes.updatePermissions(caller, sandboxId, { rules: rulesOf(permissions), preset })),

    updateNetwork: async ({ sandboxId, ...request }, { caller }) =>
      sandboxMessage(await sandboxes.updateNetwork(caller, sandboxId, networkListOf(request))),

    updateExpiry: async ({ sandboxId, expiresIn, extendOnly }, { caller }) => {
      const expiresInMs = durationMs(expiresIn, "expires_in");
      return sandboxMessage(await sandboxes.updateExpiry(caller, sandboxId, { expiresInMs, extendOnly }));
    },

    snapshotSandbox: async ({ sandboxId, label }, { caller }) =>
      snapshotMessage(await sandboxes.snapshot(caller, sandboxId, { label })),
    listSnapshots: async ({ sandboxId, ownerId }, { caller }) => ({
      snapshots: (await sandboxes.listSnapshots(caller, { sandboxId, ownerId })).map(snapshotMessage),
    }),
    restoreSandbox: async ({ sandboxId, snapshotId, onlyIdle }, { caller }) =>
      sandboxMessage(await sandboxes.restore(caller, sandboxId, { snapshotId, onlyIdle })),
    deleteSnapshot: ({ snapshotId }, { caller }) => sandboxes.deleteSnapshot(caller, snapshotId),
    async forkSandbox(
      { sandboxId, snapshotId, count, settings = create(CreateSandboxRequestSchema) },
      { caller, signal },
    ) {
      if (settings.snapshotId !== "") throw invalid("settings name no snapshot: snapshot_id beside them does");
      const request = createSandboxRequestOf(settings);
      const made = await sandboxes.fork(caller, sandboxId, { snapshotId, count, request, signal });
      return { sandboxes: made.map(sandboxMessage) };
    },

    listHomes: async ({ ownerId }, { caller }) => ({ homes: [...(await sandboxes.listHomes(caller, ownerId))] }),
    deleteHome: ({ name, ownerId }, { caller }) => sandboxes.deleteHome(caller, ownerId, name),

    explainPath: async ({ sandboxId, path }, { caller }) =>
      explanationMessage(await sandboxes.explain(caller, sandboxId, required(path, "path"))),
  } satisfies SandboxHandlers;
}

function secretHandlers(secrets: Secrets) {
  return {
    putSecret: async ({ name, value, hosts, place, ownerId }, { caller }) =>
      secretMessage(await secrets.put(caller, { name, value, hosts, place, ownerId })),
    listSecrets: async ({ ownerId }, { caller }) => ({
      secrets: (await secrets.list(caller, ownerId)).map(secretMessage),
    }),
    deleteSecret: ({ name, ownerId }, { caller }) => secrets.delete(caller, ownerId, name),
  } satisfies SandboxHandlers;
}

function sessionHandlers(sandboxes: Sandboxes, limits: MessageLimits) {
  return {
    async createSession({ sandboxId, shell, env, workdir, idleTimeout }, { caller, signal }) {
      const request = { shell, env, workdir, idleTimeoutMs: durationMs(idleTimeout, "idle_timeout") };
      return sessionMessage(await sandboxes.createSession(caller, sandboxId, request, signal));
    },

    getSession: async ({ sessionId }, { caller }) => sessionMessage(await sandboxes.getSession(caller, sessionId)),

    listSessions: async ({ sandboxId }, { caller }) => ({
      sessions: (await sandboxes.listSessions(caller, sandboxId)).map(sessionMessage),
    }),

    destroySession: ({ sessionId }, { caller }) => sandboxes.destroySession(caller, sessionId),

    async sessionExec(request, call) {
      const command = sessionCallOf(request, call.signal);
      return execResult(await sandboxes.sessionExec(call.caller, request.sessionId, command), call, limits);
    },

    async *sessionExecStream(request, { caller, signal }) {
      const command = sessionCallOf(request, signal);
      yield* execOutputs(sandboxes.sessionExecStream(caller, request.sessionId, command), limits);
    },
  } satisfies SandboxHandlers;
}

function sessionCallOf({ command, timeout }: SessionExecRequest, signal: AbortSignal) {
  required(command, "command");
  return { command, signal, timeoutMs: durationMs(timeout, "timeout") };
}

function changeHandlers(sandboxes: Sandboxes, { maxMessageBytes }: MessageLimits) {
  return {
    async listChanges({ sandboxId, pageSize, pageToken, fold }, { caller }) {
      const page = await sandboxes.changes(caller, sandboxId, { pageSize, pageToken, fold });
      return { changes: page.items.map(changeMessage), nextPageToken: page.nextPageToken };
    },

    async *diffChanges({ sandboxId, paths, patch }, { caller, signal }) {
      const diffs = sandboxes.diff(caller, sandboxId, { paths, patch, signal });
      // Beside the text there are two paths, of at most 4 KiB each.
      for await (const diff of diffs) yield* diffMessages(diff, maxMessageBytes - 16 * 1024);
    },

    async applyChanges({ sandboxId, paths, dryRun, holdExecutables }, { caller, signal }) {
      const request = { paths, dryRun, holdExecutables, signal };
      const { version, outcomes } = await sandboxes.apply(caller, sandboxId, request);
      return { version: BigInt(version), outcomes: outcomes.map(outcomeMessage) };
    },

    discardChanges: async ({ sandboxId, paths }, { caller }) => ({
      discarded: (await sandboxes.discard(caller, sandboxId, paths)).map(changeMessage),
    }),
  } satisfies SandboxHandlers;
}
