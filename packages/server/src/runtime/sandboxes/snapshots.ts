import { type Caller, maySee } from "../caller.ts";
import { checkSnapshotId, newSnapshotId } from "../ids.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import type { InheritedSettings, SandboxRecord, SnapshotRecord } from "../store/store.ts";
import type { CreateSandboxRequest, Sandboxes } from "./api.ts";
import type { Parts } from "./parts.ts";
import { translating } from "./refusals.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";

/** Sandboxes that one call makes. */
const MOST_FORKS = 100;
const LONGEST_LABEL = 256;

/** What a sandbox is made of that does not begin from its codebase. */
export interface Origin extends Pick<SnapshotRecord, "codebaseId" | "codebaseVersion" | "layer" | "settings"> {
  /** For the audit log. */
  readonly told: Readonly<Record<string, string>>;
}

/** Makes a sandbox of a frozen layer, which stays for as long as it takes. */
export type MakeFrom = (
  caller: Caller,
  request: CreateSandboxRequest,
  origin: Origin,
  signal: AbortSignal | undefined,
) => Promise<SandboxRecord>;

type Calls = Pick<Sandboxes, "snapshot" | "listSnapshots" | "restore" | "deleteSnapshot" | "fork" | "createFrom">;

/** Moments of sandboxes that can be gone back to, and begun from. */
export function snapshotCalls(parts: Parts & { readonly makeFrom: MakeFrom }): Calls {
  const { store, registry, layers, lifecycle, codebases, audit, auditTrail, defaults, clock, makeFrom } = parts;

  async function find(caller: Caller, id: string): Promise<SnapshotRecord> {
    registry.requireOpen();
    const record = await store.snapshot(checkSnapshotId(id));
    if (record === undefined || !maySee(caller, record.ownerId)) {
      throw new RuntimeError("SNAPSHOT_NOT_FOUND", "snapshot not found");
    }
    return record;
  }

  /** In the turn of the sandbox, as a user of the layers. */
  async function freeze(sandbox: RegisteredSandbox): Promise<string> {
    sandbox.requirePresent();
    requireApart(sandbox.record);
    const { codebaseId, codebaseVersion } = sandbox.record;
    const layer = await codebases.open(codebaseId, codebaseVersion);
    try {
      return await layers.freeze(sandbox, layer.directory);
    } finally {
      await layer.release();
    }
  }

  return {
    async snapshot(caller, id, { label }) {
      const sandbox = registry.find(caller, id);
      checkLabel(label);
      requireApart(sandbox.record);
      const { ownerId, codebaseId, codebaseVersion } = sandbox.record;
      const { maxSnapshotsPerOwner: most } = defaults;
      if (most > 0 && (await store.listSnapshots({ ownerId })).length >= most) throw tooMany(most);
      return await layers.using(() =>
        sandbox.turns.run(async () => {
          const layer = await translating(freeze(sandbox));
          const record: SnapshotRecord = {
            ...{ id: newSnapshotId(), ownerId, sandboxId: sandbox.id, codebaseId, codebaseVersion, label, layer },
            settings: inherited(sandbox.record),
            createdAtMs: clock(),
          };
          if (!(await store.insertSnapshot(record, most))) throw tooMany(most);
          auditTrail.tell("snapshot_created", sandbox, caller, { data: { snapshot: record.id, label } });
          return record;
        }),
      );
    },

    async listSnapshots(caller, { sandboxId, ownerId }) {
      registry.requireOpen();
      // Whoever asks for another owner's gets what that owner has for them: nothing.
      if (caller.ownerId !== undefined && ownerId !== "" && ownerId !== caller.ownerId) return [];
      const asked = caller.ownerId ?? (ownerId || undefined);
      return await store.listSnapshots({ ownerId: asked, sandboxId: sandboxId || undefined });
    },

    async restore(caller, id, { snapshotId, onlyIdle }) {
      const sandbox = registry.find(caller, id);
      const snapshot = await find(caller, snapshotId);
      const { record } = sandbox;
      if (snapshot.ownerId !== record.ownerId) throw new RuntimeError("SNAPSHOT_NOT_FOUND", "snapshot not found");
      if (snapshot.codebaseId !== record.codebaseId || snapshot.codebaseVersion !== record.codebaseVersion) {
        throw refused("the snapshot is of a sandbox with another codebase, or another version of it", record.id);
      }
      const restore = async (): Promise<SandboxRecord> => {
        sandbox.requirePresent();
        requireApart(sandbox.record);
        if (onlyIdle) requireIdle(sandbox);
        await find(caller, snapshotId); // it may have been deleted meanwhile
        await lifecycle.remake(caller, sandbox, () => layers.lay(sandbox, snapshot.layer));
        auditTrail.tell("snapshot_restored", sandbox, caller, { data: { snapshot: snapshotId } });
        return sandbox.record;
      };
      const restored = await layers.using(() => sandbox.turns.run(restore));
      void layers.sweep(); // what it had since lies on nothing now
      return restored;
    },

    async deleteSnapshot(caller, id) {
      const { ownerId, sandboxId, codebaseId } = await find(caller, id);
      if (!(await store.deleteSnapshot(id))) throw new RuntimeError("SNAPSHOT_NOT_FOUND", "snapshot not found");
      const { keyId } = caller;
      audit.record({ type: "snapshot_deleted", ownerId, sandboxId, codebaseId, keyId, data: { snapshot: id } });
      void layers.sweep();
    },

    async createFrom(caller, snapshotId, request, signal) {
      await find(caller, snapshotId);
      return await layers.using(async () => {
        const snapshot = await find(caller, snapshotId);
        return await translating(makeFrom(caller, request, { ...snapshot, told: { snapshot: snapshotId } }, signal));
      });
    },

    async fork(caller, id, { snapshotId, count, request, signal }) {
      const sandbox = registry.find(caller, id);
      if (!Number.isSafeInteger(count) || count < 1 || count > MOST_FORKS) {
        throw invalid(`count is a number of sandboxes from 1 to ${MOST_FORKS}`);
      }
      const make = async (origin: Origin): Promise<readonly SandboxRecord[]> => {
        const made: SandboxRecord[] = [];
        try {
          while (made.length < count) made.push(await makeFrom(caller, request, origin, signal));
          return made;
        } catch (error) {
          const residents = made.map(({ id: fork }) => registry.find(caller, fork));
          await Promise.allSettled(residents.map((fork) => lifecycle.destroy(caller, fork)));
          throw error;
        }
      };
      if (snapshotId !== "") {
        const snapshot = await find(caller, snapshotId);
        if (snapshot.sandboxId !== id) throw refused("the snapshot is another sandbox's", id);
        return await layers.using(async () => {
          await find(caller, snapshotId);
          return await translating(make({ ...snapshot, told: { forked_from: id, snapshot: snapshotId } }));
        });
      }
      return await layers.using(async () => {
        const layer = await sandbox.turns.run(() => translating(freeze(sandbox)));
        const { codebaseId, codebaseVersion } = sandbox.record;
        const settings = inherited(sandbox.record);
        return await translating(make({ codebaseId, codebaseVersion, layer, settings, told: { forked_from: id } }));
      });
    },
  };
}

/** A request for a sandbox that is made of another's work: what it does not say is as there. */
export function asInherited(
  request: CreateSandboxRequest,
  { codebaseId, codebaseVersion, settings }: Origin,
): CreateSandboxRequest {
  const isGiven = (field: "codebaseId" | "codebaseVersion"): boolean => request[field] !== "" && request[field] !== 0;
  if (isGiven("codebaseId") || isGiven("codebaseVersion")) {
    throw invalid("what is made of a snapshot has its codebase: codebase_id and codebase_version are not given");
  }
  if (request.sync === "on-exec") throw invalid("what is made of a snapshot does not sync by itself");
  const { allow = [], presets = [] } = request.networkList;
  const hasRules = request.rules.length > 0 || request.preset !== "";
  const isOfOwnNetwork = request.network !== undefined || allow.length > 0 || presets.length > 0;
  return {
    ...request,
    codebaseId,
    codebaseVersion,
    ...(hasRules ? {} : { rules: settings.rules }),
    ...(isOfOwnNetwork ? {} : { network: settings.network, networkList: { allow: settings.networkRules } }),
    runtime: request.runtime ?? settings.runtime,
    image: request.image || settings.image,
    resources: { ...settings.resources, ...request.resources },
    env: { ...settings.env, ...request.env },
    sync: request.sync ?? settings.sync,
    revocable: request.revocable || settings.revocable,
    workspaceHome: request.workspaceHome || settings.workspaceHome,
    idlePauseMs: request.idlePauseMs ?? settings.idlePauseMs,
  };
}

function inherited(record: SandboxRecord): InheritedSettings {
  const { rules, runtime, image, network, networkRules, resources, env, sync } = record;
  const { revocable, workspaceHome, idlePauseMs } = record;
  return { rules, runtime, image, network, networkRules, resources, env, sync, revocable, workspaceHome, idlePauseMs };
}

/** What goes to the codebase after each command has its versions there, and nothing of its own that could be kept. */
function requireApart({ id, sync, codebaseVersion }: SandboxRecord): void {
  if (sync !== "on-exec" || codebaseVersion !== 0) return;
  throw new RuntimeError(
    "SNAPSHOT_REFUSED",
    "the sandbox syncs after each command: what it changes is the codebase's",
    {
      details: { sandbox_id: id },
      hint: "go by the versions of the codebase, or create the sandbox with sync manual or never",
    },
  );
}

function requireIdle({ id, running }: RegisteredSandbox): void {
  const living = (running?.sandbox.processes.all() ?? []).filter(({ endedAtMs }) => endedAtMs === undefined);
  if (living.length === 0) return;
  const numbers = living.slice(0, 10).map(({ number }) => number);
  throw refused(`processes run in the sandbox: ${numbers.join(", ")}`, id);
}

function refused(message: string, sandboxId: string): RuntimeError {
  return new RuntimeError("SNAPSHOT_REFUSED", message, { details: { sandbox_id: sandboxId } });
}

function checkLabel(label: string): void {
  if (Buffer.byteLength(label) > LONGEST_LABEL) throw invalid(`label has at most ${LONGEST_LABEL} bytes`);
  if (label.includes("\0")) throw invalid("label contains a NUL character");
}

function tooMany(limit: number): RuntimeError {
  return new RuntimeError("LIMIT_EXCEEDED", `an owner has at most ${limit} snapshots`, {
    details: { limit: String(limit) },
    hint: "delete one first",
  });
}
