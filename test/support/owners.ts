import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { GrpcClient } from "./grpc-client.ts";
import { RestClient } from "./rest-client.ts";
import { CLI, type ServerOptions, TestServer } from "./server.ts";

/** Somebody with a key, and the clients that send it. */
export interface Party {
  readonly owner: string;
  readonly keyId: string;
  readonly key: string;
  readonly grpc: GrpcClient;
  readonly rest: RestClient;
}

/** A server that asks for keys, and those who have one: an administrator, two owners, and one who may only look. */
export class GuardedServer implements AsyncDisposable {
  readonly server: TestServer;
  readonly admin: Party;
  readonly alice: Party;
  readonly mallory: Party;
  /** Of Alice's things. */
  readonly reader: Party;
  readonly #made: Party[];

  private constructor(server: TestServer, parties: { admin: Party; alice: Party; mallory: Party; reader: Party }) {
    this.server = server;
    this.admin = parties.admin;
    this.alice = parties.alice;
    this.mallory = parties.mallory;
    this.reader = parties.reader;
    this.#made = Object.values(parties);
  }

  static async start(options: ServerOptions = {}): Promise<GuardedServer> {
    const server = await TestServer.start({
      ...options,
      settings: { ...options.settings, auth: { keys: "required", ...options.settings?.auth } },
    });
    try {
      const admin = await firstAdministrator(server);
      const [alice, mallory, reader] = [
        await party(server, admin, "alice", "ROLE_USER"),
        await party(server, admin, "mallory", "ROLE_USER"),
        await party(server, admin, "alice", "ROLE_READ_ONLY"),
      ];
      return new GuardedServer(server, { admin, alice, mallory, reader });
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Another key. */
  async party(owner: string, role = "ROLE_USER"): Promise<Party> {
    const made = await party(this.server, this.admin, owner, role);
    this.#made.push(made);
    return made;
  }

  async revoke({ keyId }: Party): Promise<void> {
    await this.admin.grpc.call("SystemService", "RevokeKey", { key_id: keyId });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { grpc } of this.#made) grpc[Symbol.dispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

/** The first key cannot come from the API: nobody could ask for it. */
async function firstAdministrator(server: TestServer): Promise<Party> {
  const args = [
    CLI,
    "key",
    "create",
    "--config",
    server.configFile,
    "--owner",
    "operator",
    "--role",
    "admin",
    "--json",
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { key, secret } = JSON.parse(stdout) as { key: { id: string }; secret: string };
  return partyWith(server, "", key.id, secret);
}

async function party(server: TestServer, admin: Party, owner: string, role: string): Promise<Party> {
  const made = await admin.grpc.call("SystemService", "CreateKey", { owner_id: owner, role });
  return partyWith(server, owner, (made.key as { id: string }).id, made.secret as string);
}

function partyWith(server: TestServer, owner: string, keyId: string, key: string): Party {
  const grpc = new GrpcClient(server.grpc, { key });
  return { owner, keyId, key, grpc, rest: new RestClient(server.http, { key }) };
}
