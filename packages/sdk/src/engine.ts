import type { Transport } from "@connectrpc/connect";
import type { CallOptions } from "./model/options.ts";

/**
 * Where sandboxes live: a server somewhere, this process, or a test's imagination. All speak the same contract, so that
 * everything above needs a transport and nothing else.
 */
export interface Engine extends AsyncDisposable {
  /** For messages: the server's address, "embedded", "mock". */
  readonly name: string;
  /** May start what it needs with the first call. */
  readonly transport: Transport;
  /**
   * Makes a directory of this machine a codebase as it is, without a copy, and gives the codebase's id; deleting that
   * codebase leaves the directory alone. Absent where files have to be uploaded.
   */
  readonly openDirectory?: (directory: string, options?: CallOptions & { readonly name?: string }) => Promise<string>;
}
