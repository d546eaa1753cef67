import type { SandboxClient } from "../../client/client.ts";
import { pause } from "../../client/retry.ts";
import { InvalidConfigurationError, SandboxNotFoundError } from "../../errors.ts";
import { requireKnownMembers } from "../../model/known-members.ts";
import type { SandboxInfo } from "../../model/records.ts";
import type { SandboxParts } from "../parts.ts";
import { emptyCodebase, givenCodebase } from "./from-codebase.ts";
import { directoryCodebase, FROM_LOCAL, type FromLocalOptions } from "./from-local.ts";
import { connect, type OpeningKit } from "./kit.ts";
import { build, type PrepareCodebase, startIdempotently, Undo } from "./open-sandbox.ts";

/** The label that sandboxes are found again by. */
const KEY_LABEL = "agentfense-key";

/** What to make the sandbox of when there is none: a directory, a codebase, or neither, which is an empty codebase. */
export type GetOrCreateOptions = Omit<FromLocalOptions, "start"> &
  (
    | { readonly directory: string; readonly codebaseId?: undefined }
    | { readonly codebaseId: string; readonly directory?: undefined }
    | { readonly directory?: undefined; readonly codebaseId?: undefined }
  );

/** A sandbox may be destroyed by others while it is being found; then there is none, and one is made. */
const ATTEMPTS = 3;
/** Longer than the tick of the server's clock in `createdAt`. */
const TICK_MS = 2;

/**
 * The sandbox of this key, started; a new one if there is none. Whoever makes one looks again afterwards, and of several
 * the oldest stays: callers that race end with the same one.
 */
export async function openByKey<S>(kit: OpeningKit<S>, key: string, options: GetOrCreateOptions): Promise<S> {
  const { start: _, ...known } = FROM_LOCAL;
  requireKnownMembers(options, { ...known, directory: true, codebaseId: true }, "the options of getOrCreate");
  if (key === "") throw new InvalidConfigurationError("the key is empty", { code: "INVALID_ARGUMENT" });
  const prepare = await preparationFor(options);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptOnce(kit, key, options, prepare);
    } catch (error) {
      if (attempt === ATTEMPTS || !(error instanceof SandboxNotFoundError)) throw error;
    }
  }
}

async function attemptOnce<S>(
  kit: OpeningKit<S>,
  key: string,
  options: GetOrCreateOptions,
  prepare: PrepareCodebase,
): Promise<S> {
  return await Undo.onFailure(async (undo) => {
    const { signal } = options;
    const connection = connect(kit, options);
    const { client, release } = connection;
    undo.add(release);
    const take = async (info: SandboxInfo, own: Partial<SandboxParts> = {}): Promise<S> => {
      const started = await startIdempotently(client, info, { signal });
      return kit.make({ ownsCodebase: false, ...own, client, info: started, owner: "other", release });
    };
    const found = await oldest(client, key, signal);
    if (found !== undefined) return await take(found);
    const labels = { ...options.labels, [KEY_LABEL]: key };
    const own = await build(connection, undo, { ...options, labels, start: false }, prepare);
    // Whoever is made after this look is younger by the clock too, so that it cannot win against what this look finds.
    await pause(TICK_MS, signal);
    const winner = (await oldest(client, key, signal)) ?? own.info;
    if (winner.id === own.info.id) return await take(own.info, own);
    await client.destroySandbox(own.info.id);
    if (own.ownsCodebase) await client.deleteCodebase(own.info.codebaseId);
    return await take(winner);
  });
}

async function oldest(
  client: SandboxClient,
  key: string,
  signal: AbortSignal | undefined,
): Promise<SandboxInfo | undefined> {
  const all = await client.listSandboxes({ labels: { [KEY_LABEL]: key }, signal }).toArray();
  // One that failed is of no use to anybody.
  const usable = all.filter(({ status }) => status !== "error");
  return usable.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1))[0];
}

async function preparationFor(options: GetOrCreateOptions): Promise<PrepareCodebase> {
  const { directory, codebaseId } = options;
  if (directory !== undefined && codebaseId !== undefined) {
    throw new InvalidConfigurationError("a directory and a codebase are two different things to start from", {
      code: "INVALID_ARGUMENT",
    });
  }
  if (directory !== undefined) return await directoryCodebase(directory, options);
  return codebaseId === undefined ? emptyCodebase(options) : givenCodebase({ codebaseId });
}
