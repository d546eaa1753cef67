import { SandboxService } from "@agentfense/protocol/sandbox";
import { type Listing, paged } from "../listing.ts";
import type { ApplyResult, Change, FileDiff } from "../model/records.ts";
import type { ApplyOptions, ChangesOptions, DiffOptions, PathsOptions } from "../model/requests.ts";
import { CallStream } from "./call-stream.ts";
import { applyResultOf, changeOf, fileDiffOf } from "./messages/changes.ts";
import { pageSizeOf } from "./messages/numbers.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;

/** Without a size the server answers with all of them in one message, which a long list does not fit into. */
const CHANGES_A_PAGE = 1000;

/**
 * | paths     | stand for              |
 * | --------- | ---------------------- |
 * | absent    | everything             |
 * | empty     | nothing                |
 * | some      | each with all below it |
 *
 * On the wire none means everything, so an empty list must not get there: it is what is left of a review that approved nothing.
 */
export class ChangeCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  list(sandboxId: string, options: ChangesOptions = {}): Listing<Change> {
    const { pageSize = CHANGES_A_PAGE, fold = false, signal } = options;
    return paged(async (pageToken) => {
      const request = { sandboxId, pageSize: pageSizeOf(pageSize), pageToken, fold };
      const page = await this.#rpc.unary(method.listChanges, request, { signal });
      return { items: page.changes.map(changeOf), nextPageToken: page.nextPageToken };
    });
  }

  diff(sandboxId: string, { paths, patch = false, signal }: DiffOptions = {}): CallStream<FileDiff> {
    if (paths?.length === 0) return CallStream.empty();
    return this.#rpc
      .serverStream(method.diffChanges, { sandboxId, paths: wirePaths(paths), patch }, { signal })
      .gather(({ more }) => more, fileDiffOf);
  }

  async apply(sandboxId: string, options: ApplyOptions = {}): Promise<ApplyResult> {
    const { paths, dryRun = false, holdExecutables = false, signal } = options;
    if (paths?.length === 0) return { version: 0, outcomes: [] };
    const request = { sandboxId, paths: wirePaths(paths), dryRun, holdExecutables };
    return applyResultOf(await this.#rpc.unary(method.applyChanges, request, { signal }));
  }

  async discard(sandboxId: string, { paths, signal }: PathsOptions = {}): Promise<Change[]> {
    if (paths?.length === 0) return [];
    const request = { sandboxId, paths: wirePaths(paths) };
    const { discarded } = await this.#rpc.unary(method.discardChanges, request, { signal });
    return discarded.map(changeOf);
  }
}

function wirePaths(paths: readonly string[] | undefined): string[] {
  return [...(paths ?? [])];
}
