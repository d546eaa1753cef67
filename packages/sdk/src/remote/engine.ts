import { connect } from "node:net";
import { rootCertificates } from "node:tls";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Engine } from "../engine.ts";
import type { ConnectionOptions, TlsOptions } from "../model/options.ts";
import { Connection, type ConnectionPatience } from "./connection.ts";
import { chooseEndpoint, type Endpoint, sendsKeyInTheClear, socketPathOf } from "./endpoint.ts";

/** A server somewhere, over one HTTP/2 connection. */
export class RemoteEngine implements Engine {
  readonly name: string;
  readonly transport: Transport;
  readonly #connection: Connection;

  constructor(endpoint: Endpoint, patience?: ConnectionPatience) {
    const { url, apiKey, tls } = endpoint;
    const path = socketPathOf(endpoint);
    // Requests name a host all the same: over a socket it is this machine.
    const baseUrl = path === undefined ? url : "http://localhost";
    this.name = url;
    this.#connection = new Connection(
      baseUrl,
      { ...socket(path), ...(tls === undefined ? {} : nodeTls(tls)) },
      patience,
    );
    this.transport = createGrpcTransport({
      baseUrl,
      sessionManager: this.#connection,
      interceptors: apiKey === undefined ? [] : [showKey(apiKey)],
    });
  }

  /** The engine that options and environment ask for. */
  static connect(
    options: Pick<ConnectionOptions, "endpoint" | "apiKey" | "tls">,
    environment: Readonly<Record<string, string | undefined>>,
  ): RemoteEngine {
    const endpoint = chooseEndpoint(options, environment);
    if (sendsKeyInTheClear(endpoint)) warnOnce(`the API key travels unencrypted to ${endpoint.url}; use https://`);
    return new RemoteEngine(endpoint);
  }

  /** Calls that run fail. */
  close(): void {
    this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

function socket(path: string | undefined) {
  return path === undefined ? {} : { createConnection: () => connect({ path }) };
}

function nodeTls({ ca, cert, key }: TlsOptions) {
  return {
    ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

function showKey(apiKey: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
}

const warned = new Set<string>();

function warnOnce(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { type: "SecurityWarning", code: "AGENTFENSE_KEY_IN_THE_CLEAR" });
}
