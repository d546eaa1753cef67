import { connect } from "node:net";
import { rootCertificates } from "node:tls";
import type { ConnectionOptions } from "@agentfense/sdk";
import { chooseEndpoint, sendsKeyInTheClear } from "@agentfense/sdk/engine";
import type { ClientOptions } from "ws";
import { CONFIRMATIONS_PATH } from "../door/address.ts";

export interface ConfirmationEndpoint {
  /** The server's address for REST: "http://HOST:PORT", "https://…", "ws://…", "wss://…" or "unix:/PATH". */
  readonly endpoint: string;
  /** Default: AGENTFENSE_API_KEY of the environment. */
  readonly apiKey?: string | undefined;
  /** With an encrypted endpoint. */
  readonly tls?: ConnectionOptions["tls"];
}

/** How a door is reached. */
export interface LinkTarget {
  readonly url: string;
  readonly options: ClientOptions;
}

export function linkTarget({ endpoint, apiKey, tls }: ConfirmationEndpoint): LinkTarget {
  const asHttp = endpoint.replace(/^ws(?=s?:\/\/)/i, "http");
  const chosen = chooseEndpoint({ endpoint: asHttp, apiKey, ...(tls === undefined ? {} : { tls }) }, process.env);
  const socketPath = /^unix:(\/.+)$/s.exec(chosen.url)?.[1];
  if (sendsKeyInTheClear(chosen)) {
    process.emitWarning(`the API key travels unencrypted to ${chosen.url}; use https://`, "SecurityWarning");
  }
  return {
    // A request names a host all the same: over a socket it is this machine.
    url: `${socketPath === undefined ? chosen.url.replace(/^http/, "ws") : "ws://localhost"}${CONFIRMATIONS_PATH}`,
    options: {
      headers: chosen.apiKey === undefined ? {} : { authorization: `Bearer ${chosen.apiKey}` },
      ...(socketPath === undefined ? {} : { createConnection: () => connect({ path: socketPath }) }),
      ...(tls?.ca === undefined ? {} : { ca: [...rootCertificates, tls.ca] }),
      ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls?.key === undefined ? {} : { key: tls.key }),
    },
  };
}
