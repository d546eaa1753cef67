import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { expect } from "vitest";
import { failureOf, type GrpcClient, type Message } from "../../../support/grpc-client.ts";
import type { ExpectedEvent, Testimony } from "./events.ts";
import type { Outcome } from "./line.ts";
import { isSame, listedManifest, type Manifest, manifestOnDisk, NOTHING, sha256, shown, totals } from "./manifest.ts";

/** What a call wants of a codebase. */
export interface Change {
  /** For people who read a failure. */
  readonly what: string;
  /** The event that tells of it, with the version that it made. */
  readonly event: ExpectedEvent;
  /** What the codebase is afterwards; `history` has every version, by its number. */
  apply(before: Manifest, history: readonly Manifest[]): Manifest;
}

/** One codebase as its clients know it: which version each acknowledged change made, and which changes are uncertain. */
export class CodebaseHistory {
  readonly id: string;
  /** Every version that was found and explained, by its number. */
  readonly versions: Manifest[] = [NOTHING];
  deletion: "none" | "lost" | "acknowledged" = "none";
  readonly #acknowledged = new Map<number, Change[]>();
  #lost: Change[] = [];
  /** The lost changes that turned out to have happened. */
  readonly happened = new Set<Change>();

  readonly #testimony: Testimony;

  constructor(id: string, testimony: Testimony) {
    this.id = id;
    this.#testimony = testimony;
  }

  get head(): Manifest {
    return this.versions.at(-1)!;
  }

  /** `versionOf` reads the version from the answer. */
  record(change: Change, outcome: Outcome, versionOf: (answer: Message) => unknown): void {
    if (outcome.is === "lost") this.#lost.push(change);
    if (outcome.is !== "acknowledged") return;
    const version = Number(versionOf(outcome.answer));
    this.#acknowledged.set(version, [...(this.#acknowledged.get(version) ?? []), change]);
  }

  /** Compares all of it with the server, through the API and on its disk. False: it is gone, as it may be. */
  async settle(client: GrpcClient, directory: string): Promise<boolean> {
    const about = { codebase_id: this.id };
    if (this.deletion !== "none" && (await this.#isGone(client))) {
      expect(existsSync(join(directory, this.id))).toBe(false);
      return false;
    }
    expect(this.deletion, `${this.id} is there`).not.toBe("acknowledged");
    const codebase = await client.call("CodebaseService", "GetCodebase", about);
    const records = await this.#listVersions(client);
    const newest = Number(codebase.version);
    expect(records.map(({ version }) => Number(version))).toEqual(Array.from({ length: newest }, (_, n) => newest - n));
    expect(Math.max(0, ...this.#acknowledged.keys()), "the newest acknowledged version").toBeLessThanOrEqual(newest);

    const known = this.versions.length;
    for (let version = known; version <= newest; version++) {
      await this.#explain(client, version);
      await this.#readBack(client, version);
      expect(records[newest - version]).toMatchObject(totals(this.versions[version]!));
    }
    // What was explained at an earlier time is still as it was.
    for (const version of [1, known >> 1, known - 1]) {
      if (version < 1 || version >= known) continue;
      expect(shown(await this.#listing(client, version)), `version ${version}`).toEqual(shown(this.versions[version]!));
      await this.#readBack(client, version);
    }
    expect(codebase).toMatchObject(totals(this.head));
    this.#checkDisk(directory);
    this.#lost = [];
    return true;
  }

  async #isGone(client: GrpcClient): Promise<boolean> {
    const answer = client.call("CodebaseService", "GetCodebase", { codebase_id: this.id });
    const outcome = await answer.then(
      () => undefined,
      () => failureOf(answer),
    );
    return outcome?.code === status.NOT_FOUND;
  }

  async #listVersions(client: GrpcClient): Promise<Message[]> {
    const found: Message[] = [];
    for (let token = ""; ; ) {
      const request = { codebase_id: this.id, page_size: 100, page_token: token };
      const page = await client.call("CodebaseService", "ListVersions", request);
      found.push(...(page.versions as Message[]));
      token = String(page.next_page_token);
      if (token === "") return found;
    }
  }

  async #listing(client: GrpcClient, version: number): Promise<Manifest> {
    const request = { codebase_id: this.id, recursive: true, version: String(version) };
    return listedManifest((await client.call("CodebaseService", "ListFiles", request)).files as Message[]);
  }

  /** A version is what its acknowledged change makes of the one before; an unknown one, what a lost change makes of it. */
  async #explain(client: GrpcClient, version: number): Promise<void> {
    const found = await this.#listing(client, version);
    const before = this.versions[version - 1]!;
    const acknowledged = this.#acknowledged.get(version);
    const candidates = acknowledged ?? this.#lost;
    const cause = candidates.find((change) => isSame(change.apply(before, this.versions), found));
    if (cause === undefined) {
      const wanted = candidates.map((change) => [change.what, shown(change.apply(before, this.versions))] as const);
      expect({ version, acknowledged: acknowledged !== undefined, found: shown(found), before: shown(before) }).toEqual(
        Object.fromEntries(wanted),
      );
    }
    this.versions.push(found);
    if (acknowledged !== undefined) this.#testimony.expect({ ...cause!.event, data: { version } });
    else {
      this.#lost.splice(this.#lost.indexOf(cause!), 1);
      this.happened.add(cause!);
    }
    for (const other of acknowledged ?? []) {
      if (other === cause) continue;
      expect(shown(other.apply(found, this.versions)), `${other.what} changed nothing`).toEqual(shown(found));
    }
  }

  /** The content of what the version changed, from the version. */
  async #readBack(client: GrpcClient, version: number): Promise<void> {
    const [before, manifest] = [this.versions[version - 1]!, this.versions[version]!];
    for (const [path, entry] of manifest) {
      const old = before.get(path);
      if (entry.kind !== "file" || (old?.kind === "file" && old.sha256 === entry.sha256)) continue;
      const content = await client.download(this.id, path, { version: String(version) });
      expect({ path, version, sha256: sha256(content) }).toEqual({ path, version, sha256: entry.sha256 });
    }
  }

  #checkDisk(directory: string): void {
    const place = join(directory, this.id);
    expect(shown(manifestOnDisk(join(place, "tree"))), "the tree on disk").toEqual(shown(this.head));
    expect(readdirSync(join(place, "staging")), "staged content").toEqual([]);
    const kept = readdirSync(join(place, "kept")).map(Number);
    expect(kept.filter((version) => !(version >= 1 && version < this.versions.length))).toEqual([]);
  }
}
