import { isBelow, nameOf, parentOf } from "./paths.ts";

export interface WatchedChange {
  readonly kind: "rename" | "change";
  /** Relative to what is watched. */
  readonly path: string;
}

interface Watch {
  readonly path: string;
  readonly recursive: boolean;
  readonly tell: (change: WatchedChange) => void;
}

/** Who is told about changes of a sandbox's files. */
export class Watchers {
  readonly #watches = new Set<Watch>();

  add(watch: Watch): () => void {
    this.#watches.add(watch);
    return () => this.#watches.delete(watch);
  }

  announce(path: string, kind: "rename" | "change"): void {
    for (const watch of this.#watches) {
      const relative = relativeTo(watch, path);
      if (relative !== undefined) watch.tell({ kind, path: relative });
    }
  }
}

/** What is watched is named by its own name. */
function relativeTo({ path: watched, recursive }: Watch, path: string): string | undefined {
  if (path === watched) return nameOf(path);
  if (!isBelow(path, watched) || !(recursive || parentOf(path) === watched)) return undefined;
  return path.slice(watched === "/" ? 1 : watched.length + 1);
}
