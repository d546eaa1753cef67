import type { SandboxClient } from "../../client/client.ts";
import type { CallOptions } from "../../model/options.ts";
import type { ApplyResult } from "../../model/records.ts";
import { codebaseSource } from "./codebase-source.ts";
import { type LocalCopy, pathsOf } from "./local-copy.ts";

/** The directory of this machine that a codebase was uploaded from. */
export class LocalDirectory {
  readonly #client: SandboxClient;
  readonly #codebaseId: string;
  readonly #copy: LocalCopy;

  constructor(client: SandboxClient, codebaseId: string, copy: LocalCopy) {
    this.#client = client;
    this.#codebaseId = codebaseId;
    this.#copy = copy;
  }

  /** Has the directory follow what was applied to the codebase; gives what became of each change in both. */
  async follow(applied: ApplyResult, options: CallOptions): Promise<ApplyResult> {
    const done = applied.outcomes.filter((outcome) => outcome.applied);
    if (done.length === 0) return applied;
    const paths = done.flatMap(({ change }) => pathsOf(change));
    const codebase = { id: this.#codebaseId, version: applied.version };
    const source = await codebaseSource(this.#client, codebase, paths, options);
    return { ...applied, outcomes: await this.#copy.write(applied.outcomes, source, options) };
  }

  /** The same for changes that would be applied. */
  async rehearse(planned: ApplyResult, options: CallOptions): Promise<ApplyResult> {
    return { ...planned, outcomes: await this.#copy.rehearse(planned.outcomes, options) };
  }
}
