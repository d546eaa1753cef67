import { readdirSync } from "node:fs";
import { expect } from "vitest";
import type { Random } from "../../../conformance/model/random.ts";
import type { GrpcClient, Message } from "../../../support/grpc-client.ts";
import type { Testimony } from "./events.ts";
import { CodebaseHistory } from "./history.ts";
import type { Line } from "./line.ts";
import { fileOf, withEntry } from "./manifest.ts";

/** A client that makes codebases with a file each and deletes those that are not needed any more. */
export class Founder {
  readonly #random: Random;
  readonly #testimony: Testimony;
  /** Codebases that are to be deleted, with the sandboxes on them. */
  readonly #retired = new Set<CodebaseHistory>();
  readonly #lostNames = new Set<string>();
  /** Every codebase that is there, or may be. */
  readonly codebases = new Map<string, CodebaseHistory>();

  constructor(random: Random, testimony: Testimony) {
    this.#random = random;
    this.#testimony = testimony;
  }

  retire(...codebases: readonly CodebaseHistory[]): void {
    for (const codebase of codebases) this.#retired.add(codebase);
  }

  async run(line: Line): Promise<void> {
    while (!line.isCut) {
      const [retired] = this.#retired;
      if (retired !== undefined) await this.#delete(line, retired);
      else await this.#found(line);
    }
  }

  /** One that is wanted for more. */
  async create(client: GrpcClient): Promise<CodebaseHistory> {
    const answer = await client.call("CodebaseService", "CreateCodebase", { name: "project" });
    return this.#add(String(answer.id));
  }

  /** All that should be there is there as it should be, and nothing else. Gives how many versions are new. */
  async settle(client: GrpcClient, directory: string): Promise<number> {
    let found = 0;
    for (const [id, codebase] of this.codebases) {
      const known = codebase.versions.length;
      if (!(await codebase.settle(client, directory))) this.codebases.delete(id);
      else if (codebase.deletion === "lost") this.retire(codebase);
      found += codebase.versions.length - known;
    }
    const listed = await this.#list(client);
    const strays = listed.filter(({ id }) => !this.codebases.has(String(id)));
    expect(strays.filter(({ name }) => !this.#lostNames.has(String(name)))).toEqual([]);
    for (const { id } of strays) await client.call("CodebaseService", "DeleteCodebase", { codebase_id: id });
    expect(readdirSync(directory).sort()).toEqual([...this.codebases.keys()].sort());
    return found;
  }

  async #found(line: Line): Promise<void> {
    const name = `founded-${this.#random.below(2 ** 30)}`;
    const outcome = await line.call("CodebaseService", "CreateCodebase", { name });
    if (outcome.is === "lost") this.#lostNames.add(name);
    if (outcome.is !== "acknowledged") return;
    const codebase = this.#add(String(outcome.answer.id));
    const change = {
      what: "the first file",
      event: { type: "files_uploaded", codebaseId: codebase.id },
      apply: () => withEntry(new Map(), "a/b", fileOf(name)),
    };
    const upload = await line.attempt(change.what, () => line.client.upload(codebase.id, "a/b", name));
    codebase.record(change, upload, ({ version }) => version);
    this.retire(codebase);
  }

  async #delete(line: Line, codebase: CodebaseHistory): Promise<void> {
    this.#retired.delete(codebase);
    const outcome = await line.call("CodebaseService", "DeleteCodebase", { codebase_id: codebase.id, force: true });
    if (outcome.is === "refused") throw new Error(`${codebase.id} could not be deleted`);
    codebase.deletion = outcome.is;
    if (outcome.is === "acknowledged") this.#testimony.expect({ type: "codebase_deleted", codebaseId: codebase.id });
  }

  #add(id: string): CodebaseHistory {
    const codebase = new CodebaseHistory(id, this.#testimony);
    this.codebases.set(id, codebase);
    this.#testimony.expect({ type: "codebase_created", codebaseId: id });
    return codebase;
  }

  async #list(client: GrpcClient): Promise<Message[]> {
    const found: Message[] = [];
    for (let token = ""; ; ) {
      const page = await client.call("CodebaseService", "ListCodebases", { page_size: 100, page_token: token });
      found.push(...(page.codebases as Message[]));
      token = String(page.next_page_token);
      if (token === "") return found;
    }
  }
}
