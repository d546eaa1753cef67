import {
  type CallOptions,
  type ConnectOptions,
  type CreateOptions,
  type FromCodebaseOptions,
  type FromLocalOptions,
  type GetOrCreateOptions,
  type Listing,
  type ListSandboxesOptions,
  type OpenOptions,
  Sandbox as RemoteSandbox,
  type SandboxInfo,
} from "@agentfense/sdk";
import {
  listSandboxes,
  type OpeningKit,
  openByKey,
  openCodebase,
  openExisting,
  openLocal,
  openNew,
  openSnapshot,
  RemoteEngine,
} from "@agentfense/sdk/engine";
import { defaultEngine } from "./embedded/default-engine.ts";

/**
 * A guarded environment for an agent's commands, on a codebase of which it sees what the rules show. It is where `engine` or
 * `client` says, else on the server of `endpoint` or AGENTFENSE_ENDPOINT, else in this process.
 */
export class Sandbox extends RemoteSandbox {
  /** A sandbox on a directory of this machine. Nothing is written there unless `apply` is called. */
  static override async fromLocal(directory: string, options: FromLocalOptions = {}): Promise<Sandbox> {
    return await openLocal(KIT, directory, options);
  }

  /** A sandbox on a codebase that is there, and stays. */
  static override async fromCodebase(codebaseId: string, options: FromCodebaseOptions = {}): Promise<Sandbox> {
    return await openCodebase(KIT, codebaseId, options);
  }

  /** A sandbox on a codebase that is there, or else on an empty one of its own. */
  static override async create(options: CreateOptions = {}): Promise<Sandbox> {
    return await openNew(KIT, options);
  }

  /** A sandbox that begins from a snapshot: what the options do not say is as in the sandbox that the snapshot is of. */
  static override async fromSnapshot(snapshotId: string, options: OpenOptions = {}): Promise<Sandbox> {
    return await openSnapshot(KIT, snapshotId, options);
  }

  /** A sandbox that is there. Disposing leaves it alone. */
  static override async connect(sandboxId: string, options: ConnectOptions & CallOptions = {}): Promise<Sandbox> {
    return await openExisting(KIT, sandboxId, options);
  }

  /** The sandbox of this key, started; made if there is none. Disposing leaves it alone. */
  static override async getOrCreate(key: string, options: GetOrCreateOptions = {}): Promise<Sandbox> {
    return await openByKey(KIT, key, options);
  }

  /** Those that the caller may see. */
  static override list(options: ConnectOptions & ListSandboxesOptions = {}): Listing<SandboxInfo> {
    return listSandboxes(KIT, options);
  }
}

const KIT: OpeningKit<Sandbox> = {
  make: (parts) => new Sandbox(parts),
  engineFor: (options) => defaultEngine(options, process.env) ?? RemoteEngine.connect(options, process.env),
};
