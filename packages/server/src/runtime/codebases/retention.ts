import type { Retention } from "../store/store.ts";
import type { Parts } from "./parts.ts";

type RetentionParts = Pick<Parts, "store" | "disk" | "log"> & { readonly keep: Retention };

/**
 * Lets old versions go. First the metadata forgets them, then the disk removes what they kept: a crash in between leaves
 * content that nobody can ask for, and the next start removes that. Sandboxes of a version that goes have a directory of
 * their own and keep it.
 */
export class VersionRetention {
  readonly #parts: RetentionParts;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  /**
   * For whoever has the codebase's turn. Gives the oldest version that is left, 0 when none is known to be. What cannot be
   * done now is done after the next change, or at the next start.
   */
  async apply(codebaseId: string): Promise<number> {
    const { store, disk, keep, log } = this.#parts;
    let oldest = 0;
    try {
      for (let hasMore = true; hasMore; ) {
        const dropped = await store.dropVersions(codebaseId, keep);
        ({ oldest, hasMore } = dropped);
        if (dropped.released.length > 0) await disk.release(codebaseId, dropped.released);
      }
    } catch (error) {
      log({ level: "warn", message: "old versions could not be removed", codebaseId, error });
    }
    return oldest;
  }
}
