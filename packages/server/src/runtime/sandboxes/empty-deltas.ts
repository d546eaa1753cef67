import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** Changes of a directory that follow one another this fast may have one and the same time. */
const SAME_TIME_MS = 100;

/** Which deltas have nothing in them, seen at a glance: it is asked after every command, and most commands change nothing. */
export class EmptyDeltas {
  /** When a delta that was found empty had last changed; it is empty as long as that is so. */
  readonly #changedAt = new Map<string, bigint>();

  async has(delta: string): Promise<boolean> {
    const tree = join(delta, "tree");
    const known = this.#changedAt.get(delta);
    if (known !== undefined && known === lastChangeOf(tree)) return true;
    this.#changedAt.delete(delta);
    const lookedAtMs = Date.now();
    try {
      if ((await readdir(tree)).length > 0) return false;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "ENOENT";
    }
    const changedAt = lastChangeOf(tree);
    if (changedAt !== undefined && Number(changedAt / 1_000_000n) < lookedAtMs - SAME_TIME_MS) {
      this.#changedAt.set(delta, changedAt);
    }
    return true;
  }

  forget(delta: string): void {
    this.#changedAt.delete(delta);
  }
}

/** Nobody can set this time. Asked at once: the directory was read before, and while it is mounted the kernel has it in memory. */
function lastChangeOf(directory: string): bigint | undefined {
  try {
    return statSync(directory, { bigint: true }).ctimeNs;
  } catch {
    return undefined;
  }
}
