import { SandboxService } from "@agentfense/protocol/sandbox";
import { type Listing, paged } from "../listing.ts";
import type { PageOptions } from "../model/options.ts";
import type { ApplyResult, Change, FileDiff } from "../model/records.ts";
import type { ApplyOptions, PathsOptions } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { applyResultOf, changeOf, fileDiffOf } from "./messages/changes.ts";
import { pageSizeOf } from "./messages/numbers.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;

/** Without a size the server answers with all of them in one message, which a long list does not fit into. */
const CHANGES_A_PAGE = 1000;

export class ChangeCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  list(sandboxId: string, { pageSize = CHANGES_A_PAGE, signal }: PageOptions = {}): Listing<Change> {
    return paged(async (pageToken) => {
      const request = { sandboxId, pageSize: pageSizeOf(pageSize), pageToken };
      const page = await this.#rpc.unary(method.listChanges, request, { signal });
      return { items: page.changes.map(changeOf), nextPageToken: page.nextPageToken };
    });
  }

  diff(sandboxId: string, { paths = [], signal }: PathsOptions = {}): CallStream<FileDiff> {
    return this.#rpc.serverStream(method.diffChanges, { sandboxId, paths: [...paths] }, { signal }).map(fileDiffOf);
  }

  async apply(sandboxId: string, { paths = [], dryRun = false, signal }: ApplyOptions = {}): Promise<ApplyResult> {
    const request = { sandboxId, paths: [...paths], dryRun };
    return applyResultOf(await this.#rpc.unary(method.applyChanges, request, { signal }));
  }

  async discard(sandboxId: string, { paths = [], signal }: PathsOptions = {}): Promise<Change[]> {
    const { discarded } = await this.#rpc.unary(method.discardChanges, { sandboxId, paths: [...paths] }, { signal });
    return discarded.map(changeOf);
  }
}
