import { userInfo } from "node:os";
import type { SandboxClient } from "../../client/client.ts";
import { SandboxError } from "../../errors.ts";
import type { CallOptions, SandboxOptions } from "../../model/options.ts";
import type { SandboxInfo } from "../../model/records.ts";
import type { SandboxParts } from "../parts.ts";
import { type Connection, connect, type OpeningKit, type OpenOptions } from "./kit.ts";

/** The codebase of a sandbox that is being opened, or the snapshot. */
export interface PreparedCodebase {
  /** Instead of the codebase. */
  readonly snapshotId?: string | undefined;
  readonly codebaseId: string;
  readonly codebaseVersion?: number | undefined;
  /** It was made for this sandbox. */
  readonly isOwn: boolean;
  readonly localDirectory?: SandboxParts["localDirectory"];
  /** Instead of what the caller says, which is in there. */
  readonly sandbox?: SandboxOptions | undefined;
}

export type PrepareCodebase = (connection: Connection, undo: Undo) => Promise<PreparedCodebase>;

/** Connects, gets the codebase ready, makes the sandbox, starts it. When anything fails, nothing of it is left. */
export async function open<S>(kit: OpeningKit<S>, options: OpenOptions, prepare: PrepareCodebase): Promise<S> {
  return await Undo.onFailure(async (undo) => {
    options.signal?.throwIfAborted();
    const connection = connect(kit, options);
    undo.add(connection.release);
    return kit.make(await build(connection, undo, options, prepare));
  });
}

/** The same over a connection that is there. */
export async function build(
  connection: Connection,
  undo: Undo,
  options: OpenOptions,
  prepare: PrepareCodebase,
): Promise<SandboxParts> {
  const { client, release } = connection;
  const { labels, signal } = options;
  const {
    snapshotId,
    codebaseId,
    codebaseVersion,
    isOwn,
    localDirectory,
    sandbox = options,
  } = await prepare(connection, undo);
  signal?.throwIfAborted();
  const own = { ...sandboxOptionsOf(sandbox), labels };
  // Not with the signal: what was made has to be known, to be removed again.
  const created = await (snapshotId === undefined
    ? client.createSandbox({ ...own, codebaseId, codebaseVersion })
    : client.createFromSnapshot(snapshotId, own));
  undo.add(() => client.destroySandbox(created.id));
  signal?.throwIfAborted();
  const info = options.start === false ? created : await client.startSandbox(created.id, { signal });
  return { client, info, owner: "this", ownsCodebase: isOwn, localDirectory, release };
}

/** A codebase for this sandbox alone, still empty. */
export async function ownCodebase(
  { client }: Connection,
  undo: Undo,
  { name, ownerId, signal }: OpenOptions & { readonly name: string },
): Promise<string> {
  const owner = ownerId ?? (await defaultOwner(client, signal));
  const { id } = await client.createCodebase({ name, ownerId: owner });
  // Forced: what is being undone may have become a sandbox that nobody heard of.
  undo.add(() => client.deleteCodebase(id, { force: true }));
  signal?.throwIfAborted();
  return id;
}

/** Somebody has to be named where no key says who it is. */
async function defaultOwner(client: SandboxClient, signal: AbortSignal | undefined): Promise<string | undefined> {
  const { ownerId } = await client.getServerInfo({ signal });
  return ownerId === "" ? userName() : undefined;
}

/** A process in a container may have a user that nobody knows. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "local";
  }
}

/** Nothing of the connection, and nothing that only opening is about. The compiler notices one that is missing. */
function sandboxOptionsOf(options: SandboxOptions): {
  readonly [Name in keyof Required<SandboxOptions>]: SandboxOptions[Name];
} {
  const { preset, permissions, runtime, image, resources, network, secrets, sync, env, labels } = options;
  const { expiresInMs, revocable, idlePauseMs, home } = options;
  return {
    ...{ preset, permissions, runtime, image, resources, network, secrets, sync, env, labels },
    ...{ expiresInMs, revocable, idlePauseMs, home },
  };
}

/** Starts it unless it runs; somebody else may be quicker. */
export async function startIdempotently(
  client: SandboxClient,
  { id }: Pick<SandboxInfo, "id">,
  options: CallOptions,
): Promise<SandboxInfo> {
  try {
    return await client.startSandbox(id, options);
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== "SANDBOX_ALREADY_RUNNING") throw error;
    return await client.getSandbox(id, options);
  }
}

/** What to do when an opening fails half-way: the newest first, each whatever becomes of the others. */
export class Undo {
  readonly #steps: (() => Promise<unknown>)[] = [];

  add(step: () => Promise<unknown>): void {
    this.#steps.push(step);
  }

  /** Runs the work; when it fails, undoes what it had done so far. Its own error is what callers hear of. */
  static async onFailure<T>(work: (undo: Undo) => Promise<T>): Promise<T> {
    const undo = new Undo();
    try {
      return await work(undo);
    } catch (error) {
      for (const step of undo.#steps.reverse()) await step().catch(() => {});
      throw error;
    }
  }
}
