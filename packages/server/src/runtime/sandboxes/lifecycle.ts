import { type SecretRule, type SecretWithValue, withSecretHosts } from "../../isolation/network/secrets.ts";
import type { SandboxEvent, SandboxSpec } from "../../isolation/sandbox/api.ts";
import { type Caller, SERVER } from "../caller.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { SandboxRecord } from "../store/store.ts";
import { limitsOf } from "./creation.ts";
import type { TakenHome } from "./homes.ts";
import { requireWithin } from "./network.ts";
import type { Parts } from "./parts.ts";
import { shuttingDown, toRuntimeError } from "./refusals.ts";
import type { RegisteredSandbox, Running } from "./registered-sandbox.ts";
import { isHeld, isLiving } from "./state.ts";

/** What is got for a sandbox before it is mounted. */
interface LaunchParts {
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

  start(caller: Caller, registered: RegisteredSandbox, signal: AbortSignal | undefined): Promise<SandboxRecord> {
    return registered.turns.run(async () => {
      this.#requireOpen(registered);
      await registered.step("start", {
        work: () => this.#launch(registered, caller, signal),
        undo: () => this.#halt(registered, "stopped"),
        changes: () => ({ startedAtMs: this.#parts.clock() }),
      });
      this.#parts.pausing.rest(registered);
      this.#parts.auditTrail.tell("sandbox_started", registered, caller, {
        data: { runtime: registered.record.runtime },
      });
      return registered.record;
    });
  }

  stop(caller: Caller, registered: RegisteredSandbox): Promise<SandboxRecord> {
    return registered.turns.run(async () => {
      this.#requireOpen(registered);
      await registered.step("stop", {
        work: () => this.#halt(registered, "stopped"),
        changes: () => ({ stoppedAtMs: this.#parts.clock() }),
      });
      this.#parts.auditTrail.tell("sandbox_stopped", registered, caller);
      return registered.record;
    });
  }

  /** From any state. Whoever comes second finds no sandbox. */
  destroy(caller: Caller, registered: RegisteredSandbox, cause: "destroyed" | "expired" = "destroyed"): Promise<void> {
    return registered.depart(() => {
      registered.starting?.abort();
      return registered.turns.run(async () => {
        const { store, deltas, auditTrail, log, registry } = this.#parts;
        await this.#halt(registered, "stopped", { sync: false });
        await registered.syncs.settled();
        // The record goes first: a delta without a record is removed when the server starts again.
        await store.deleteSandbox(registered.id);
        registry.remove(registered);
        if (cause === "expired") auditTrail.tell("sandbox_expired", registered, caller);
        auditTrail.tell("sandbox_destroyed", registered, caller);
        await deltas.remove(this.#parts.deltaOf(registered)).catch((error: unknown) => {
          log({ level: "error", message: "a delta could not be removed", sandboxId: registered.id, error });
        });
        void this.#parts.layers.sweep();
      });
    });
  }

  /** Puts other changes in the place of a sandbox's, in its turn. What ran is ended, and the sandbox runs again if it did. */
  async remake(caller: Caller, registered: RegisteredSandbox, lay: () => Promise<void>): Promise<void> {
    this.#requireOpen(registered);
    const wasLiving = isLiving(registered.state);
    await this.#halt(registered, "stopped", { sync: false });
    await lay();
    if (wasLiving) await this.#launch(registered, caller, undefined);
    this.#parts.pausing.rest(registered);
  }

  /** After a restart of the server: a sandbox that ran runs again, one that was paused is so again, or says why not. */
  bringBack(registered: RegisteredSandbox): Promise<void> {
    return registered.turns.run(async () => {
      if (this.#closing || registered.departure !== undefined || !isLiving(registered.state)) return;
      try {
        await this.#launch(registered, SERVER, undefined);
      } catch (error) {
        // Its failure is in its record and in the audit log, unless it did not even come to a start.
        const isUntold = !this.#closing && registered.departure === undefined && isLiving(registered.state);
        if (isUntold) await this.#leave(registered, error);
        return;
      }
      this.#parts.auditTrail.tell("sandbox_started", registered, SERVER, { data: { restarted: true } });
      this.#parts.pausing.rest(registered);
    });
  }

  /** Ends everything that runs and leaves the records: what runs now will run again. */
  async close(allRegistered: Iterable<RegisteredSandbox>): Promise<void> {
    this.#closing = true;
    await Promise.all(
      [...allRegistered].map((registered) => {
        registered.starting?.abort();
        return registered.turns.run(() => this.#halt(registered, "server_restarted"));
      }),
    );
  }

  async #launch(registered: RegisteredSandbox, caller: Caller, signal: AbortSignal | undefined): Promise<void> {
    const { observe, clock } = this.#parts;
    // A secret that is not there, or a home that another sandbox has, is no failure of this one: it can start later.
    const secrets = await this.#parts.secrets.open(registered.record);
    const home = await this.#parts.homes.take(registered.record);
    const abandoned = new AbortController();
    registered.starting = abandoned;
    const beganAtMs = clock();
    const tellStart = (ok: boolean): void => observe?.start?.(clock() - beganAtMs, ok);
    try {
      const signals = [abandoned.signal, ...(signal === undefined ? [] : [signal])];
      registered.running = await this.#mount(registered, { home, secrets }, AbortSignal.any(signals));
      registered.asked();
      tellStart(true);
    } catch (error) {
      registered.requirePresent();
      if (this.#closing) throw shuttingDown();
      const failure = toRuntimeError(error);
      if (signal?.aborted) throw failure;
      tellStart(false);
      await this.#fail(registered, caller, failure.message, error);
      throw new RuntimeError(failure.code, `failed to start sandbox: ${failure.message}`, {
        cause: error,
        details: { sandbox_id: registered.id, status: "ERROR" },
        hint: failure.hint,
      });
    } finally {
      registered.starting = undefined;
      registered.missed = undefined;
    }
  }

  async #mount(registered: RegisteredSandbox, { home, secrets }: LaunchParts, signal: AbortSignal): Promise<Running> {
    const { codebases, isolation } = this.#parts;
    const { record } = registered;
    const networkRules = withSecretHosts(record.networkRules, secrets);
    requireWithin(networkRules, this.#parts.defaults.networkAllow); // the operator's list may have changed
    await using undo = new AsyncDisposableStack();
    undo.defer(() => home?.release());
    const layer = await codebases.open(record.codebaseId, record.codebaseVersion);
    undo.defer(() => layer.release());
    const missed = new Set<string>();
    registered.missed = missed;
    const toolchains = record.runtime === "bwrap" ? await this.#parts.toolchains?.(layer.directory) : undefined;
    const { ociRuntime } = this.#parts;
    const beneath = await this.#parts.layers.beneath(registered);
    const delta = this.#parts.deltaOf(registered);
    const workspace = { lowers: [layer.directory], beneath, delta, rules: record.rules };
    const { diskBytes, diskFiles } = record.resources;
    const isLimited = beneath.length > 0 && (diskBytes !== undefined || diskFiles !== undefined);
    const spec: SandboxSpec = {
      id: record.id,
      runtime: record.runtime,
      workspaces: [{ ...workspace, revocable: record.revocable }, ...(toolchains?.workspaces ?? [])],
      limits: limitsOf(record.resources),
      usedBeneath: isLimited ? await this.#parts.layers.used(beneath) : undefined,
      network: record.network,
      ...(record.network === "filtered" ? { networkRules, secrets } : {}),
      env: { ...toolchains?.env, ...record.env },
      ...(home === undefined ? {} : { home: home.directory }),
      ...(record.workspaceHome === "" ? {} : { workspaceHome: record.workspaceHome }),
      ...(record.image === "" ? {} : { image: record.image }),
      ...(record.runtime === "docker" && ociRuntime !== undefined ? { ociRuntime } : {}),
      onEvent: (event) => this.#onEvent(registered, event),
      nextProcessNumber: () => ++registered.lastProcessNumber,
    };
    const sandbox = undo.use(await isolation.create(spec, { signal }));
    await sandbox.start({ signal });
    if (isHeld(registered.state)) await sandbox.pause();
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
    registered: RegisteredSandbox,
    sessionReason: string,
    options: { readonly sync: boolean } = { sync: true },
  ): Promise<void> {
    const { running } = registered;
    if (running === undefined) return;
    registered.running = { ...running, isEnding: true };
    clearTimeout(registered.idleTimer);
    registered.idleTimer = undefined;
    const attempt = async (what: string, work: () => Promise<unknown>): Promise<void> => {
      await work().catch((error: unknown) =>
        this.#parts.log({ level: "error", message: `${what} failed`, sandboxId: registered.id, error }),
      );
    };
    const sessionsEnded = this.#parts.sessions.announceEnd(registered, sessionReason);
    await attempt("taking the box down", () => running.sandbox.destroy());
    await attempt("closing sessions", sessionsEnded);
    // Now nothing writes any more, and nothing is open: background processes have had their say.
    if (options.sync) await attempt("the last sync", () => this.#parts.sync.afterCommand(registered, SERVER));
    await registered.syncs.settled();
    registered.running = undefined;
    await attempt("letting go of the codebase", () => running.release());
  }

  #onEvent(registered: RegisteredSandbox, event: SandboxEvent): void {
    this.#parts.auditTrail.tellEvent(registered, event);
    if (event.kind !== "mount_lost") return;
    const failing = registered.turns.run(async () => {
      if (registered.running === undefined || this.#closing || registered.departure !== undefined) return;
      await this.#fail(registered, SERVER, "its file system failed", new Error(event.reason));
    });
    failing.catch((error: unknown) => {
      this.#parts.log({ level: "error", message: "a failure could not be noted", sandboxId: registered.id, error });
    });
  }

  /** It ran when the last server ended, and cannot run now. */
  async #leave(registered: RegisteredSandbox, error: unknown): Promise<void> {
    const { code, message: reason } = toRuntimeError(error);
    if (code !== "SECRET_NOT_FOUND" && code !== "SEALING_KEY_MISSING") {
      return await this.#fail(registered, SERVER, reason, error);
    }
    const { auditTrail, clock } = this.#parts;
    await registered.step("stop", { changes: () => ({ stoppedAtMs: clock() }), reason });
    auditTrail.tell("sandbox_stopped", registered, SERVER, { level: "warn", data: { reason } });
  }

  async #fail(registered: RegisteredSandbox, caller: Caller, reason: string, error: unknown): Promise<void> {
    const { auditTrail, log, clock } = this.#parts;
    log({ level: "error", message: "a sandbox failed", sandboxId: registered.id, error });
    await registered.step("fail", {
      work: () => this.#halt(registered, "killed"),
      changes: () => ({ stoppedAtMs: clock() }),
      reason,
    });
    auditTrail.tell("sandbox_failed", registered, caller, { level: "error", data: { reason } });
  }

  #requireOpen(registered: RegisteredSandbox): void {
    if (this.#closing) throw shuttingDown();
    registered.requirePresent();
  }
}
