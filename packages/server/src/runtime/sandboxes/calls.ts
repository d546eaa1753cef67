import type { Rule } from "@agentfense/permission";
import { withSecretHosts } from "../../isolation/network/secrets.ts";
import type { Caller } from "../caller.ts";
import { decodePageToken, pageLimit, pageOf } from "../page.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import type { SandboxRecord } from "../store/store.ts";
import { KeyedTurns } from "../waiting.ts";
import type { CreateSandboxRequest, Sandboxes } from "./api.ts";
import { checkExpiry, newSandbox } from "./creation.ts";
import { storedNetworkRules } from "./network.ts";
import type { Parts } from "./parts.ts";
import { translating } from "./refusals.ts";
import { RegisteredSandbox } from "./registered-sandbox.ts";
import { storedRules, workspacePath } from "./request.ts";
import { asInherited, type MakeFrom, type Origin } from "./snapshots.ts";

type Calls = Pick<
  Sandboxes,
  | ("create" | "get" | "list" | "start" | "stop" | "pause" | "resume" | "destroy")
  | ("listHomes" | "deleteHome" | "deleteCodebase" | "updatePermissions" | "updateNetwork" | "updateExpiry" | "explain")
>;

/** How many sandboxes an error names. */
const MOST_NAMED = 10;

/** The calls about sandboxes as a whole. `onExpiry`: one may be the next to expire. */
export function sandboxCalls(parts: Parts & { onExpiry(): void }): Calls & { readonly makeFrom: MakeFrom } {
  const { store, codebases, registry, lifecycle, pausing, homes, secrets, auditTrail, clock } = parts;
  /** Who makes a sandbox and who deletes its codebase take turns. */
  const codebaseTurns = new KeyedTurns();
  const onCodebase = async <T>(codebaseId: string, work: () => Promise<T>): Promise<T> => {
    registry.requireOpen();
    if (codebaseId === "") throw invalid("codebase_id is required");
    return await codebaseTurns.take(codebaseId, work);
  };

  const make = (
    caller: Caller,
    request: CreateSandboxRequest,
    signal: AbortSignal | undefined,
    origin?: Origin,
  ): Promise<SandboxRecord> =>
    onCodebase(request.codebaseId, async () => {
      const codebase = await codebases.get(caller, request.codebaseId);
      // Files of the person who runs us are written when that person says so.
      const sync = codebases.direct(codebase.id) === undefined ? parts.defaults.sync : "manual";
      const defaults = { ...parts.defaults, sync };
      const asked = { id: codebase.id, version: request.codebaseVersion };
      const home = await translating(homes.admit(request.home, asked));
      const admitted = await secrets.admit(codebase.ownerId, request.secrets);
      const terms = { ...parts, defaults, nowMs: clock() };
      const made = newSandbox({ ...request, home, secrets: admitted }, codebase, terms);
      const record = { ...made, secrets: secrets.recordsFor(made, admitted) };
      if (record.codebaseVersion > 0) await codebases.getVersion(caller, codebase.id, record.codebaseVersion);
      if (signal?.aborted) throw new RuntimeError("CANCELLED", "the call was cancelled");
      const { maxPerOwner } = defaults;
      if (origin !== undefined) await parts.layers.lay(record, origin.layer);
      const isIn = await store.insertSandbox(record, maxPerOwner).catch(async (error: unknown) => {
        await parts.deltas.remove(parts.deltaOf(record));
        throw error;
      });
      if (!isIn) {
        if (origin !== undefined) await parts.deltas.remove(parts.deltaOf(record));
        throw tooManySandboxes(maxPerOwner);
      }
      const registered = new RegisteredSandbox(record, store);
      registry.add(registered);
      auditTrail.tell("sandbox_created", registered, caller, { data: { ...creationData(record), ...origin?.told } });
      parts.onExpiry();
      return record;
    });

  return {
    /** For snapshotCalls. */
    makeFrom: (caller, request, origin, signal) => make(caller, asInherited(request, origin), signal, origin),

    create: (caller, request, signal) => make(caller, request, signal),

    get: async (caller, id) => registry.find(caller, id).record,

    async list(caller, query) {
      registry.requireOpen();
      const after = decodePageToken(query.pageToken, ["number", "string"]);
      // Whoever asks for another owner's gets what that owner has for them: nothing.
      if (caller.ownerId !== undefined && query.ownerId !== "" && query.ownerId !== caller.ownerId) {
        return { items: [], nextPageToken: "" };
      }
      const ownerId = caller.ownerId ?? (query.ownerId || undefined);
      const limit = pageLimit(query.pageSize);
      const codebaseId = query.codebaseId || undefined;
      const { status, labels } = query;
      const found = await store.listSandboxes({ ownerId, codebaseId, status, labels, after, limit: limit + 1 });
      return pageOf(found, limit, ({ createdAtMs, id }) => [createdAtMs, id]);
    },

    start: async (caller, id, signal) => translating(lifecycle.start(caller, registry.find(caller, id), signal)),
    stop: async (caller, id) => translating(lifecycle.stop(caller, registry.find(caller, id))),
    pause: async (caller, id) => translating(pausing.pause(caller, await registry.findReturned(caller, id))),
    resume: async (caller, id) => translating(pausing.resume(caller, await registry.findReturned(caller, id))),
    destroy: async (caller, id) => translating(lifecycle.destroy(caller, registry.find(caller, id))),

    async listHomes(caller, ownerId) {
      registry.requireOpen();
      return await homes.list(caller, ownerId);
    },

    async deleteHome(caller, ownerId, name) {
      registry.requireOpen();
      await translating(homes.delete(caller, ownerId, name));
    },

    deleteCodebase: (caller, codebaseId, options) =>
      onCodebase(codebaseId, async () => {
        await codebases.get(caller, codebaseId);
        const users = registry.of(codebaseId);
        const staying = users.filter(({ departure }) => departure === undefined);
        if (staying.length > 0 && !options.force) throw inUse(staying);
        await Promise.all(
          users.map((registered) => registered.departure ?? translating(lifecycle.destroy(caller, registered))),
        );
        await codebases.delete(caller, codebaseId);
        for (const { id } of await store.listSnapshots({ codebaseId })) await store.deleteSnapshot(id);
        void parts.layers.sweep();
      }),

    async updatePermissions(caller, id, request) {
      const rules = storedRules(request);
      const registered = registry.find(caller, id);
      return await registered.turns.run(async () => {
        registered.requirePresent();
        // In force first: a crash in between leaves the stored rules, which were in force before.
        await translating(registered.running?.sandbox.updateRules(rules) ?? Promise.resolve());
        await registered.update({ rules });
        auditTrail.tell("permissions_updated", registered, caller, { data: { permissions: rules } });
        return registered.record;
      });
    },

    async updateNetwork(caller, id, list) {
      const networkRules = storedNetworkRules(list, parts.defaults.networkAllow);
      const registered = registry.find(caller, id);
      return await registered.turns.run(async () => {
        registered.requirePresent();
        const { network } = registered.record;
        if (network !== "filtered") throw invalid(`the network ${network} has no list of hosts; filtered has`);
        const { running } = registered;
        if (running !== undefined) {
          await translating(running.sandbox.updateNetwork(withSecretHosts(networkRules, running.secrets)));
        }
        await registered.update({ networkRules });
        auditTrail.tell("network_updated", registered, caller, { data: { network_rules: networkRules } });
        return registered.record;
      });
    },

    async updateExpiry(caller, id, { expiresInMs, extendOnly }) {
      const registered = registry.find(caller, id);
      if (expiresInMs === undefined) throw invalid("expires_in is required");
      const inMs = checkExpiry(expiresInMs, parts.defaults);
      return await registered.turns.run(async () => {
        registered.requirePresent();
        const expiresAtMs = clock() + inMs;
        const before = registered.record.expiresAtMs ?? Number.POSITIVE_INFINITY;
        if (extendOnly && before >= expiresAtMs) return registered.record;
        await registered.update({ expiresAtMs });
        auditTrail.tell("expiry_updated", registered, caller, {
          data: { expires_at: new Date(expiresAtMs).toISOString() },
        });
        parts.onExpiry();
        return registered.record;
      });
    },

    async explain(caller, id, path) {
      const { policy } = registry.find(caller, id);
      const { level, reason, candidates, path: normal } = policy.explain(workspacePath(path));
      const told = ({ rule: index, reason: why }: { readonly rule: number; readonly reason: string }) => {
        return { index, rule: policy.rules[index] as Rule, reason: why };
      };
      const deciding = candidates.find(({ lostBy }) => lostBy === undefined);
      return {
        path: normal,
        permission: level,
        deciding: deciding && told(deciding),
        losing: candidates.filter(({ lostBy }) => lostBy !== undefined).map(told),
        text: `${normal} is ${level}: ${reason}`,
      };
    },
  };
}

function tooManySandboxes(limit: number): RuntimeError {
  return new RuntimeError("LIMIT_EXCEEDED", `an owner has at most ${limit} sandboxes`, {
    details: { limit: String(limit) },
    hint: "destroy one first, or raise sandbox.max_per_user in the server's configuration",
  });
}

function inUse(users: readonly RegisteredSandbox[]): RuntimeError {
  const ids = users.slice(0, MOST_NAMED).map(({ id }) => id);
  const more = users.length > ids.length ? ` and ${users.length - ids.length} more` : "";
  return new RuntimeError("CODEBASE_IN_USE", `the codebase is in use by ${ids.join(", ")}${more}`, {
    details: { sandbox_ids: ids.join(","), count: String(users.length) },
    hint: "destroy them first, or delete with force",
  });
}

function creationData(record: SandboxRecord) {
  const { rules, runtime, network, networkRules, secrets, sync, labels, codebaseVersion } = record;
  const list = network === "filtered" ? { network_rules: networkRules } : {};
  const names = secrets.length > 0 ? { secrets: secrets.map(({ name }) => name) } : {};
  return { permissions: rules, runtime, network, ...list, ...names, sync, labels, codebase_version: codebaseVersion };
}
