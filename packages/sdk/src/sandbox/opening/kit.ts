import { SandboxClient } from "../../client/client.ts";
import type { Engine } from "../../engine.ts";
import type { MembersOf } from "../../model/known-members.ts";
import type { CallOptions, ConnectionOptions, SandboxOptions } from "../../model/options.ts";
import type { SandboxParts } from "../parts.ts";

/** What the functions that open sandboxes leave open: where sandboxes are by default, and the class that they become. */
export interface OpeningKit<S> {
  readonly make: (parts: SandboxParts) => S;
  /** For callers who name neither an engine nor a client. It is disposed of with the sandbox: of a shared one, give a lease. */
  readonly engineFor: (options: ConnectionOptions) => Engine;
}

/** Where a sandbox is. Of several the first of this order counts: client, engine, the connection options. */
export interface ConnectOptions extends ConnectionOptions {
  /** Stays open, whatever becomes of the sandbox. */
  readonly engine?: Engine | undefined;
  /** Stays open, whatever becomes of the sandbox. */
  readonly client?: SandboxClient | undefined;
}

/** What a sandbox is opened with. */
export interface OpenOptions extends ConnectOptions, SandboxOptions, CallOptions {
  /** Default true. */
  readonly start?: boolean | undefined;
  /** The name of the codebase that is made. */
  readonly name?: string | undefined;
  /** Whose the codebase is that is made; default: the owner of the API key, else the user of this process. */
  readonly ownerId?: string | undefined;
}

const CONNECTING: MembersOf<ConnectOptions> = {
  ...{ endpoint: true, apiKey: true, tls: true, requestTimeoutMs: true, retries: true },
  ...{ engine: true, client: true },
};

/** All that opening a sandbox can be told; a way to open one has some of its own. */
export const OPENING: MembersOf<OpenOptions> = {
  ...CONNECTING,
  ...{ preset: true, permissions: true, runtime: true, image: true, resources: true, network: true, secrets: true },
  ...{ sync: true, env: true, labels: true, expiresInMs: true, revocable: true, idlePauseMs: true, home: true },
  ...{ start: true, name: true, ownerId: true, signal: true },
};

export interface Connection {
  readonly client: SandboxClient;
  readonly openDirectory: Engine["openDirectory"];
  /** Ends what was begun for it, and nothing that was handed in. */
  readonly release: () => Promise<void>;
}

export function connect<S>(kit: OpeningKit<S>, options: ConnectOptions): Connection {
  if (options.client !== undefined) {
    const { client } = options;
    return { client, openDirectory: directoryOpener(client.engine), release: async () => {} };
  }
  const engine = options.engine ?? kit.engineFor(options);
  const client = new SandboxClient({ ...options, engine });
  const release = async (): Promise<void> => {
    await client.close();
    if (options.engine === undefined) await engine[Symbol.asyncDispose]();
  };
  return { client, openDirectory: directoryOpener(engine), release };
}

function directoryOpener(engine: Engine): Engine["openDirectory"] {
  return engine.openDirectory && ((directory, options) => engine.openDirectory!(directory, options));
}
