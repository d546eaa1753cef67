import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";
import { Random } from "../../../conformance/model/random.ts";
import type { GrpcClient, Message } from "../../../support/grpc-client.ts";
import type { RestClient } from "../../../support/rest-client.ts";
import { Agent } from "./agent.ts";
import type { Box } from "./box.ts";
import { Testimony } from "./events.ts";
import { Founder } from "./founder.ts";
import type { CodebaseHistory } from "./history.ts";
import { Keeper } from "./keeper.ts";
import { Line } from "./line.ts";
import { Uploader } from "./uploader.ts";

/** The ways to one server: as a user, and as its administrator. */
export interface Clients {
  readonly user: GrpcClient;
  readonly admin: GrpcClient;
  readonly audit: RestClient;
}

/** Kills the server sooner or later, and says so just before. */
export type Kill = (announce: () => void) => Promise<void>;

/** What was checked, over all rounds. */
export interface Tally {
  acknowledged: number;
  lost: number;
  versions: number;
  events: number;
}

/** After so many rounds everybody moves to new codebases, and the old ones are deleted. */
const GENERATION = 3;

/** All clients of a server and what they know of it, over the deaths of the server. */
export class World {
  readonly #random: Random;
  readonly #directory: string;
  readonly #testimony = new Testimony();
  readonly #founder: Founder;
  readonly #keeper: Keeper;
  readonly #boxes = new Set<Box>();
  readonly #lostCreations = new Set<string>();
  #codebases: CodebaseHistory[] = [];
  #workers: { run(line: Line): Promise<void> }[] = [];
  #round = 0;
  readonly tally: Tally = { acknowledged: 0, lost: 0, versions: 0, events: 0 };

  constructor(seed: number, directory: string) {
    this.#random = new Random(seed);
    this.#directory = directory;
    this.#founder = new Founder(this.#fork(), this.#testimony);
    this.#keeper = new Keeper(this.#fork(), this.#testimony);
  }

  /** Works until `kill` has killed the server; gives what came of it. */
  async work({ user, admin }: Clients, kill: Kill): Promise<{ acknowledged: number; lost: number }> {
    if (this.#round++ % GENERATION === 0) await this.#beginGeneration(user);
    const lines = [new Line(user), new Line(admin)] as const;
    const [asUser, asAdmin] = lines;
    const workers = [
      ...this.#workers.map((worker) => worker.run(asUser)),
      this.#founder.run(asUser),
      this.#keeper.run(asAdmin),
    ];
    const ended = Promise.all(workers);
    ended.catch(() => {}); // awaited below
    // Whoever fails before the server is dead fails the round at once.
    const announce = (): void => {
      for (const line of lines) line.cut();
    };
    const killed = kill(announce);
    await Promise.race([killed, ended]);
    await Promise.all([killed, ended]);
    const outcome = { acknowledged: asUser.acknowledged + asAdmin.acknowledged, lost: asUser.lost + asAdmin.lost };
    this.tally.acknowledged += outcome.acknowledged;
    this.tally.lost += outcome.lost;
    return outcome;
  }

  /** Everything is as the clients know it, on a server that was started anew. */
  async settle({ user, admin, audit }: Clients): Promise<void> {
    const deltas = join(this.#directory, "mounts", "delta");
    this.#checkDatabase();
    this.tally.versions += await this.#founder.settle(user, join(this.#directory, "codebases"));
    for (const box of this.#boxes) {
      if (!(await box.settle(user, deltas))) this.#boxes.delete(box);
    }
    await this.#removeStrays(user);
    const known = new Set([...this.#boxes].map(({ id }) => id));
    expect(
      readdirSync(deltas).filter((name) => !known.has(name)),
      "deltas of nobody",
    ).toEqual([]);
    await this.#keeper.settle(admin);
    this.tally.events += await this.#testimony.check(audit);
  }

  async #beginGeneration(user: GrpcClient): Promise<void> {
    this.#founder.retire(...this.#codebases);
    const [busy, calm] = [await this.#founder.create(user), await this.#founder.create(user)];
    this.#codebases = [busy, calm];
    const uploader = (area: string, codebase: CodebaseHistory, rollsBack: boolean): Uploader =>
      new Uploader({ area, random: this.#fork(), codebase, rollsBack });
    const common = { testimony: this.#testimony, boxes: this.#boxes, lostCreations: this.#lostCreations };
    this.#workers = [
      uploader("one", busy, true),
      uploader("two", busy, true),
      uploader("three", calm, false),
      new Agent({ ...common, random: this.#fork(), codebase: busy, sync: "SYNC_MODE_ON_EXEC" }),
      new Agent({ ...common, random: this.#fork(), codebase: calm, sync: "SYNC_MODE_ON_EXEC" }),
      new Agent({ ...common, random: this.#fork(), codebase: calm, sync: "SYNC_MODE_MANUAL" }),
    ];
  }

  /** Sandboxes that nobody was told of are those whose creators were not answered. */
  async #removeStrays(user: GrpcClient): Promise<void> {
    const { sandboxes } = (await user.call("SandboxService", "ListSandboxes", { page_size: 1000 })) as {
      sandboxes: (Message & { labels: Record<string, string> })[];
    };
    const known = new Set([...this.#boxes].map(({ id }) => id));
    const strays = sandboxes.filter(({ id }) => !known.has(String(id)));
    expect(strays.filter(({ labels }) => !this.#lostCreations.has(labels.label ?? ""))).toEqual([]);
    for (const { id } of strays) await user.call("SandboxService", "DestroySandbox", { sandbox_id: id });
  }

  #checkDatabase(): void {
    const database = new DatabaseSync(join(this.#directory, "metadata.db"), { readOnly: true });
    try {
      expect(database.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
      expect(database.prepare("SELECT count(*) AS unfinished FROM journals").get()).toEqual({ unfinished: 0 });
      expect(database.prepare("SELECT count(*) AS open FROM sessions WHERE status = 'ACTIVE'").get()).toEqual({
        open: 0,
      });
    } finally {
      database.close();
    }
  }

  #fork(): Random {
    return new Random(this.#random.below(2 ** 31));
  }
}
