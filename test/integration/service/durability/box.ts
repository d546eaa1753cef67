import { existsSync } from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { expect } from "vitest";
import { failureOf, type GrpcClient, type Message } from "../../../support/grpc-client.ts";
import type { Change, CodebaseHistory } from "./history.ts";
import { type Entry, fileOf, lineOf, type Manifest, shown } from "./manifest.ts";

export type SyncMode = "SYNC_MODE_ON_EXEC" | "SYNC_MODE_MANUAL";
export type Status = "PENDING" | "RUNNING" | "STOPPED";

/** What a lost command may have done: each path is as it was or as it was to become; scratch files may be in any state. */
export interface Uncertainty {
  readonly change: Change | undefined;
  readonly becoming: ReadonlyMap<string, Entry | undefined>;
  readonly scratch: readonly string[];
  /** One path takes the place of another: one of the two has what it is. */
  readonly move?: { readonly from: string; readonly to: string };
}

/** One sandbox as its client knows it. */
export class Box {
  readonly id: string;
  readonly codebase: CodebaseHistory;
  readonly sync: SyncMode;
  /** How the names begin that it alone writes. */
  readonly #prefix: string;
  /** More than one after a call whose answer was lost. */
  statuses: ReadonlySet<Status> = new Set(["PENDING"]);
  destruction: "none" | "lost" | "acknowledged" = "none";
  /** Any of these, in full. */
  permissions: readonly (readonly Message[])[];
  /** Sessions that are open, or may be. */
  readonly sessions = new Set<string>();
  readonly closedSessions = new Set<string>();
  /** What it changed and did not write to the codebase; undefined where it deleted. */
  readonly delta = new Map<string, Entry | undefined>();
  /** What it sees of its own, when nobody else interferes. */
  files: Map<string, Entry> = new Map();
  uncertainty: Uncertainty | undefined;

  constructor(id: string, codebase: CodebaseHistory, sync: SyncMode, permissions: readonly Message[]) {
    this.id = id;
    this.codebase = codebase;
    this.sync = sync;
    this.#prefix = `${id}-`;
    this.permissions = [permissions];
  }

  path(name: string): string {
    return `${this.#prefix}${name}`;
  }

  /** It did this, and has not written it to the codebase. */
  changed(effects: ReadonlyMap<string, Entry | undefined>): void {
    for (const [path, entry] of effects) {
      this.delta.set(path, entry);
      if (entry === undefined) this.files.delete(path);
      else this.files.set(path, entry);
    }
  }

  /** What a process inside sees of the box's own files, before what is uncertain. */
  #view(): Manifest {
    const seen = new Map([...this.codebase.head].filter(([path]) => path.startsWith(this.#prefix)));
    for (const [path, entry] of this.delta) {
      if (entry === undefined) seen.delete(path);
      else seen.set(path, entry);
    }
    return seen;
  }

  /** Compares it with the server; false: it is gone, as it may be. Afterwards nothing is uncertain. */
  async settle(client: GrpcClient, deltas: string): Promise<boolean> {
    const about = { sandbox_id: this.id };
    const answer = client.call("SandboxService", "GetSandbox", about);
    const found = await answer.catch(() => undefined);
    if (found === undefined) {
      expect(await failureOf(answer)).toMatchObject({ code: status.NOT_FOUND });
      const mayBeGone = this.destruction !== "none" || this.codebase.deletion !== "none";
      expect({ sandbox: this.id, mayBeGone }).toEqual({ sandbox: this.id, mayBeGone: true });
      expect(existsSync(join(deltas, this.id)), `the delta of ${this.id}`).toBe(false);
      return false;
    }
    expect(this.destruction, `${this.id} is there`).not.toBe("acknowledged");
    const current = String(found.status).replace("SANDBOX_STATUS_", "") as Status;
    expect([...this.statuses], `${this.id} ${found.status_reason}`).toContain(current);
    this.statuses = new Set([current]);
    expect(this.permissions.map((rules) => JSON.stringify(rules))).toContain(JSON.stringify(found.permissions));
    this.permissions = [found.permissions as Message[]];
    await this.#settleSessions(client);
    if (current === "RUNNING") await this.#settleFiles(client);
    return true;
  }

  async #settleSessions(client: GrpcClient): Promise<void> {
    const { sessions } = await client.call("SandboxService", "ListSessions", { sandbox_id: this.id });
    const found = new Map((sessions as Message[]).map((session) => [session.id, session]));
    for (const session of found.values()) {
      expect(session).toMatchObject({
        status: "SESSION_STATUS_CLOSED",
        close_reason: expect.stringMatching(/^(server_restarted|stopped|closed)$/),
      });
    }
    for (const id of this.sessions) expect([...found.keys()], "sessions").toContain(id);
    for (const id of this.closedSessions) expect([...found.keys()], "closed sessions").not.toContain(id);
    this.sessions.clear();
  }

  async #settleFiles(client: GrpcClient): Promise<void> {
    const changes = await this.#changes(client);
    const { change, becoming = new Map(), scratch = [], move } = this.uncertainty ?? {};
    this.uncertainty = undefined;
    const hasHappened = change !== undefined && this.codebase.happened.has(change);
    if (hasHappened) this.delta.clear(); // all of it is in the codebase now, and only there
    const loose = new Set(hasHappened ? [] : [...becoming.keys(), ...scratch]);
    const allowed = new Set([...this.delta.keys(), ...loose]);
    const paths = changes.flatMap(({ path, old_path: old }) => [path, old].filter((each) => each !== "")).map(relative);
    expect(
      paths.filter((path) => !allowed.has(path)),
      `changes of ${this.id} that nobody asked for`,
    ).toEqual([]);

    const seen = await this.#seen(client);
    const expected = new Map(this.#view());
    for (const path of loose) {
      const now = seen.get(path);
      const states = [expected.get(path), becoming.get(path)].map((entry) => entry && lineOf(entry));
      if (!scratch.includes(path)) expect(states, `${path} in ${this.id}`).toContain(now && lineOf(now));
      if (now === undefined) expected.delete(path);
      else expected.set(path, now);
    }
    if (move !== undefined && !hasHappened && !seen.has(move.from)) {
      expect(seen.get(move.to), `${move.from} moved to ${move.to}`).toEqual(becoming.get(move.to));
    }
    expect(shown(seen), `what ${this.id} sees`).toEqual(shown(expected));
    await this.#discard(
      client,
      paths.filter((path) => loose.has(path)),
    );
    this.files = new Map(await this.#seen(client));
  }

  /** So that the next round begins with what is certain. */
  async #discard(client: GrpcClient, paths: readonly string[]): Promise<void> {
    for (const path of paths) this.delta.delete(path);
    if (paths.length === 0) return;
    await client.call("SandboxService", "DiscardChanges", {
      sandbox_id: this.id,
      paths: paths.map((path) => `/${path}`),
    });
  }

  async #changes(client: GrpcClient): Promise<{ readonly path: string; readonly old_path: string }[]> {
    const { changes } = await client.call("SandboxService", "ListChanges", { sandbox_id: this.id });
    return changes as { path: string; old_path: string }[];
  }

  /** With the content read through the view. */
  async #seen(client: GrpcClient): Promise<Manifest> {
    const request = { sandbox_id: this.id, path: "" };
    const listing = await client.call("SandboxService", "ListDirectory", request);
    const files = (listing.files as Message[]).filter(({ path }) => String(path).startsWith(this.#prefix));
    const seen = new Map<string, Entry>();
    for (const { path, mode } of files) {
      const chunks = await client.collect("SandboxService", "ReadFile", { sandbox_id: this.id, path });
      const content = Buffer.concat(chunks.map(({ data }) => data as Buffer));
      seen.set(relative(String(path)), fileOf(content, Number(mode)));
    }
    return seen;
  }
}

function relative(path: string): string {
  return path.replace(/^\//, "");
}
