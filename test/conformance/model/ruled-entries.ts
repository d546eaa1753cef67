import { fifo, file, link, type Tree } from "../../support/tree.ts";
import type { ModelEntry } from "./guarded-model.ts";
import type { Random } from "./random.ts";
import { RULED_NAMES } from "./random-rules.ts";

/** The codebase leads nowhere and has files, directories and links only; or it has everything. */
interface Variety {
  readonly everyKind: boolean;
}

/** A codebase over the names the rules speak of; each file says where it came from. */
export function randomEntries(random: Random, variety: Variety = { everyKind: false }): Map<string, ModelEntry> {
  const entries = new Map<string, ModelEntry>();
  const targets = variety.everyKind ? ["a", "ab", "b/a", ".a/ab", ".", "nowhere"] : ["nowhere"];
  const fifos = variety.everyKind ? 4 : 0;
  const fill = (directory: string, depth: number) => {
    for (const name of RULED_NAMES) {
      const path = `${directory}/${name}`;
      const kind = random.weighted({ none: 30, file: 40, directory: depth < 3 ? 30 : 0, symlink: 5, fifo: fifos });
      const mode = variety.everyKind ? { mode: random.pick([0o644, 0o600, 0o755, 0o444]) } : {};
      if (kind === "file") entries.set(path, { type: "file", content: `content of ${path}`, ...mode });
      if (kind === "symlink") entries.set(path, { type: "symlink", target: random.pick(targets) });
      if (kind === "fifo") entries.set(path, { type: "fifo" });
      if (kind !== "directory") continue;
      entries.set(path, { type: "directory" });
      fill(path, depth + 1);
    }
  };
  fill("", 1);
  return entries;
}

export function treeOf(entries: ReadonlyMap<string, ModelEntry>, below = "/"): Tree {
  const start = below === "/" ? "/" : `${below}/`;
  const names = [...entries.keys()].filter((path) => path.startsWith(start) && !path.slice(start.length).includes("/"));
  return Object.fromEntries(names.map((path) => [path.slice(start.length), entryOf(entries, path)]));
}

function entryOf(entries: ReadonlyMap<string, ModelEntry>, path: string): Tree[string] {
  const entry = entries.get(path);
  switch (entry?.type) {
    case "file":
      return entry.mode === undefined ? entry.content : file({ content: entry.content, mode: entry.mode });
    case "symlink":
      return link(entry.target);
    case "fifo":
      return fifo();
    default:
      return treeOf(entries, path);
  }
}
