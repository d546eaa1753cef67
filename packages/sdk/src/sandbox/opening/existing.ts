import { Listing } from "../../listing.ts";
import type { CallOptions } from "../../model/options.ts";
import type { SandboxInfo } from "../../model/records.ts";
import type { ListSandboxesOptions } from "../../model/requests.ts";
import { type ConnectOptions, connect, type OpeningKit } from "./kit.ts";
import { Undo } from "./undo.ts";

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
