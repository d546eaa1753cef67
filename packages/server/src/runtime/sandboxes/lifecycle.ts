import { type SecretRule, type SecretWithValue, withSecretHosts } from "../../isolation/network/secrets.ts";
import type { SandboxEvent, SandboxSpec } from "../../isolation/sandbox/api.ts";
import { type Caller, SERVER } from "../caller.ts";
import { RuntimeError } from "../errors.ts";
import type { SandboxRecord } from "../store/store.ts";
import { limitsOf } from "./creation.ts";
import { shuttingDown, toRuntimeError } from "./errors.ts";
import type { TakenHome } from "./homes.ts";
import { requireWithin } from "./network.ts";
import type { Parts } from "./parts.ts";
import type { Resident, Running } from "./resident.ts";
import { isHeld, isLiving } from "./state.ts";

/** What is got for a sandbox before it is mounted. */
interface Belongings {
  readonly home: TakenHome | undefined;
  readonly secrets: readonly SecretWithValue[];
}

type LifecycleParts = Omit<Parts, "lifecycle" | "commands">;

/** Starts, stops and destroys sandboxes: each step in the sandbox's own turn, so that one never waits for another. */
export class Lifecycle {
  readonly #parts: LifecycleParts;
  #closing = false;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
  }

  start(caller: Caller, resident: Resident, signal: AbortSignal | undefined): Promise<SandboxRecord> {
    return resident.turns.run(async () => {
      this.#requireOpen(resident);
      await resident.step("start", {
        work: () => this.#launch(resident, caller, signal),
        undo: () => this.#halt(resident, "stopped"),
        changes: () => ({ startedAtMs: this.#parts.clock() }),
      });
      this.#parts.pausing.rest(resident);
      this.#parts.witness.tell("sandbox_started", resident, caller, { data: { runtime: resident.record.runtime } });
      return resident.record;
    });
  }

  stop(caller: Caller, resident: Resident): Promise<SandboxRecord> {
    return resident.turns.run(async () => {
      this.#requireOpen(resident);
      await resident.step("stop", {
        work: () => this.#halt(resident, "stopped"),
        changes: () => ({ stoppedAtMs: this.#parts.clock() }),
      });
      this.#parts.witness.tell("sandbox_stopped", resident, caller);
      return resident.record;
    });
  }

  /** From any state. Whoever comes second finds no sandbox. */
  destroy(caller: Caller, resident: Resident, cause: "destroyed" | "expired" = "destroyed"): Promise<void> {
    return resident.depart(() => {
      resident.starting?.abort();
      return resident.turns.run(async () => {
        const { store, deltas, witness, log, registry } = this.#parts;
        await this.#halt(resident, "stopped", { sync: false });
        await resident.syncs.settled();
        // The record goes first: a delta without a record is removed when the server starts again.
        await store.deleteSandbox(resident.id);
        registry.remove(resident);
        if (cause === "expired") witness.tell("sandbox_expired", resident, caller);
        witness.tell("sandbox_destroyed", resident, caller);
        await deltas.remove(this.#parts.deltaOf(resident)).catch((error: unknown) => {
          log({ level: "error", message: "a delta could not be removed", sandboxId: resident.id, error });
        });
      });
    });
  }

  /** After a restart of the server: a sandbox that ran runs again, one that was paused is so again, or says why not. */
  bringBack(resident: Resident): Promise<void> {
    return resident.turns.run(async () => {
      if (this.#closing || resident.departure !== undefined || !isLiving(resident.state)) return;
      try {
        await this.#launch(resident, SERVER, undefined);
      } catch (error) {
        // Its failure is in its record and in the audit log, unless it did not even come to a start.
        const isUntold = !this.#closing && resident.departure === undefined && isLiving(resident.state);
        if (isUntold) await this.#leave(resident, error);
        return;
      }
      this.#parts.witness.tell("sandbox_started", resident, SERVER, { data: { restarted: true } });
      this.#parts.pausing.rest(resident);
    });
  }

  /** Ends everything that runs and leaves the records: what runs now will run again. */
  async close(residents: Iterable<Resident>): Promise<void> {
    this.#closing = true;
    await Promise.all(
      [...residents].map((resident) => {
        resident.starting?.abort();
        return resident.turns.run(() => this.#halt(resident, "server_restarted"));
      }),
    );
  }

  async #launch(resident: Resident, caller: Caller, signal: AbortSignal | undefined): Promise<void> {
    const { observe, clock } = this.#parts;
    // A secret that is not there, or a home that another sandbox has, is no failure of this one: it can start later.
    const secrets = await this.#parts.secrets.open(resident.record);
    const home = await this.#parts.homes.take(resident.record);
    const abandoned = new AbortController();
    resident.starting = abandoned;
    const beganAtMs = clock();
    const tellStart = (ok: boolean): void => observe?.start?.(clock() - beganAtMs, ok);
    try {
      const signals = [abandoned.signal, ...(signal === undefined ? [] : [signal])];
      resident.running = await this.#mount(resident, { home, secrets }, AbortSignal.any(signals));
      resident.asked();
      tellStart(true);
    } catch (error) {
      resident.requirePresent();
      if (this.#closing) throw shuttingDown();
      const failure = toRuntimeError(error);
      if (signal?.aborted) throw failure;
      tellStart(false);
      await this.#fail(resident, caller, failure.message, error);
      throw new RuntimeError(failure.code, `failed to start sandbox: ${failure.message}`, {
        cause: error,
        details: { sandbox_id: resident.id, status: "ERROR" },
        hint: failure.hint,
      });
    } finally {
      resident.starting = undefined;
      resident.missed = undefined;
    }
  }

  async #mount(resident: Resident, { home, secrets }: Belongings, signal: AbortSignal): Promise<Running> {
    const { codebases, isolation } = this.#parts;
    const { record } = resident;
    const networkRules = withSecretHosts(record.networkRules, secrets);
    requireWithin(networkRules, this.#parts.defaults.networkAllow); // the operator's list may have changed
    await using undo = new AsyncDisposableStack();
    undo.defer(() => home?.release());
    const layer = await codebases.open(record.codebaseId, record.codebaseVersion);
    undo.defer(() => layer.release());
    const missed = new Set<string>();
    resident.missed = missed;
    const toolchains = record.runtime === "bwrap" ? await this.#parts.toolchains?.(layer.directory) : undefined;
    const { ociRuntime } = this.#parts;
    const workspace = { lowers: [layer.directory], delta: this.#parts.deltaOf(resident), rules: record.rules };
    const spec: SandboxSpec = {
      id: record.id,
      runtime: record.runtime,
      workspaces: [{ ...workspace, revocable: record.revocable }, ...(toolchains?.workspaces ?? [])],
      limits: limitsOf(record.resources),
      network: record.network,
      ...(record.network === "filtered" ? { networkRules, secrets } : {}),
      env: { ...toolchains?.env, ...record.env },
      ...(home === undefined ? {} : { home: home.directory }),
      ...(record.workspaceHome === "" ? {} : { workspaceHome: record.workspaceHome }),
      ...(record.image === "" ? {} : { image: record.image }),
      ...(record.runtime === "docker" && ociRuntime !== undefined ? { ociRuntime } : {}),
      onEvent: (event) => this.#onEvent(resident, event),
      nextProcessNumber: () => ++resident.lastProcessNumber,
    };
    const sandbox = undo.use(await isolation.create(spec, { signal }));
    await sandbox.start({ signal });
    if (isHeld(resident.state)) await sandbox.pause();
    if (missed.size > 0) await sandbox.codebaseChanged([...missed]);
    undo.move();
    const isDirect = codebases.direct(record.codebaseId) !== undefined;
    return {
      sandbox,
      secrets: secrets.map(({ name, hosts, place }): SecretRule => ({ name, hosts, place })),
      lower: layer.directory,
      async release() {
        home?.release();
        await layer.release();
      },
      // What goes wrong there the next command meets, and tells in its own words.
      lookAgain: isDirect ? () => sandbox.lookAgain().catch(() => {}) : undefined,
    };
  }

  /** Ends what runs, all of it, whatever fails on the way; then writes what is left to the codebase. */
  async #halt(
    resident: Resident,
    sessionReason: string,
    options: { readonly sync: boolean } = { sync: true },
  ): Promise<void> {
    const { running } = resident;
    if (running === undefined) return;
    resident.running = { ...running, isEnding: true };
    clearTimeout(resident.idleTimer);
    resident.idleTimer = undefined;
    const attempt = async (what: string, work: () => Promise<unknown>): Promise<void> => {
      await work().catch((error: unknown) =>
        this.#parts.log({ level: "error", message: `${what} failed`, sandboxId: resident.id, error }),
      );
    };
    const sessionsEnded = this.#parts.sessions.announceEnd(resident, sessionReason);
    await attempt("taking the box down", () => running.sandbox.destroy());
    await attempt("closing sessions", sessionsEnded);
    // Now nothing writes any more, and nothing is open: background processes have had their say.
    if (options.sync) await attempt("the last sync", () => this.#parts.sync.afterCommand(resident, SERVER));
    await resident.syncs.settled();
    resident.running = undefined;
    await attempt("letting go of the codebase", () => running.release());
  }

  #onEvent(resident: Resident, event: SandboxEvent): void {
    this.#parts.witness.tellEvent(resident, event);
    if (event.kind !== "engine_lost") return;
    const failing = resident.turns.run(async () => {
      if (resident.running === undefined || this.#closing || resident.departure !== undefined) return;
      await this.#fail(resident, SERVER, "its file system failed", new Error(event.reason));
    });
    failing.catch((error: unknown) => {
      this.#parts.log({ level: "error", message: "a failure could not be noted", sandboxId: resident.id, error });
    });
  }

  /** It ran when the last server ended, and cannot run now. */
  async #leave(resident: Resident, error: unknown): Promise<void> {
    const { code, message: reason } = toRuntimeError(error);
    if (code !== "SECRET_NOT_FOUND" && code !== "SEALING_KEY_MISSING") {
      return await this.#fail(resident, SERVER, reason, error);
    }
    const { witness, clock } = this.#parts;
    await resident.step("stop", { changes: () => ({ stoppedAtMs: clock() }), reason });
    witness.tell("sandbox_stopped", resident, SERVER, { level: "warn", data: { reason } });
  }

  async #fail(resident: Resident, caller: Caller, reason: string, error: unknown): Promise<void> {
    const { witness, log, clock } = this.#parts;
    log({ level: "error", message: "a sandbox failed", sandboxId: resident.id, error });
    await resident.step("fail", {
      work: () => this.#halt(resident, "killed"),
      changes: () => ({ stoppedAtMs: clock() }),
      reason,
    });
    witness.tell("sandbox_failed", resident, caller, { level: "error", data: { reason } });
  }

  #requireOpen(resident: Resident): void {
    if (this.#closing) throw shuttingDown();
    resident.requirePresent();
  }
}
