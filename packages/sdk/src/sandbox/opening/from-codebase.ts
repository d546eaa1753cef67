import { Listing } from "../../listing.ts";
import { requireKnownMembers } from "../../model/known-members.ts";
import type { CallOptions } from "../../model/options.ts";
import type { SandboxInfo } from "../../model/records.ts";
import type { ListSandboxesOptions } from "../../model/requests.ts";
import { type ConnectOptions, connect, OPENING, type OpeningKit, type OpenOptions } from "./kit.ts";
import { open, ownCodebase, type PrepareCodebase, Undo } from "./open-sandbox.ts";

export interface FromCodebaseOptions extends OpenOptions {
  /** Pins it to a version; default: the newest, and it follows. */
  readonly codebaseVersion?: number | undefined;
}

export interface CreateOptions extends OpenOptions {
  /** Default: an empty one, which goes with the sandbox. */
  readonly codebaseId?: string | undefined;
}

/** A sandbox on a codebase that is there, and stays. */
export async function openCodebase<S>(
  kit: OpeningKit<S>,
  codebaseId: string,
  options: FromCodebaseOptions,
): Promise<S> {
  requireKnownMembers(options, { ...OPENING, codebaseVersion: true }, "the options of fromCodebase");
  return await open(kit, options, givenCodebase({ codebaseId, codebaseVersion: options.codebaseVersion }));
}

/** A sandbox on a codebase that is there, or on an empty one of its own. */
export async function openNew<S>(kit: OpeningKit<S>, options: CreateOptions): Promise<S> {
  requireKnownMembers(options, { ...OPENING, codebaseId: true }, "the options of create");
  const { codebaseId } = options;
  return await open(kit, options, codebaseId === undefined ? emptyCodebase(options) : givenCodebase({ codebaseId }));
}

export function givenCodebase(codebase: {
  readonly codebaseId: string;
  readonly codebaseVersion?: number | undefined;
}): PrepareCodebase {
  return async () => ({ ...codebase, isOwn: false });
}

export function emptyCodebase(options: OpenOptions): PrepareCodebase {
  return async (connection, undo) => {
    const codebaseId = await ownCodebase(connection, undo, { ...options, name: options.name ?? "sandbox" });
    return { codebaseId, isOwn: true };
  };
}

/** A sandbox that begins from a snapshot. */
export async function openSnapshot<S>(kit: OpeningKit<S>, snapshotId: string, options: OpenOptions): Promise<S> {
  return await open(kit, options, async () => ({ snapshotId, codebaseId: "", isOwn: false }));
}

/** A sandbox that is there, in whatever state. */
export async function openExisting<S>(
  kit: OpeningKit<S>,
  sandboxId: string,
  options: ConnectOptions & CallOptions,
): Promise<S> {
  return await Undo.onFailure(async (undo) => {
    const { client, release } = connect(kit, options);
    undo.add(release);
    const info = await client.getSandbox(sandboxId, { signal: options.signal });
    return kit.make({ client, info, owner: "other", ownsCodebase: false, release });
  });
}

/** The sandboxes that the caller may see. Each iteration has a connection of its own, unless one is handed in. */
export function listSandboxes<S>(
  kit: OpeningKit<S>,
  options: ConnectOptions & ListSandboxesOptions,
): Listing<SandboxInfo> {
  return new Listing(async function* () {
    const { client, release } = connect(kit, options);
    try {
      yield* client.listSandboxes(options);
    } finally {
      await release();
    }
  });
}
