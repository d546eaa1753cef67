import { file, hardlink, link, type Tree } from "../../support/tree.ts";
import type { Random } from "./random.ts";

/** As long as a name can be: nothing fits in front of it. */
export const LONG_NAME = "n".repeat(255);

/** Few names, so that operations meet each other and what is in the codebase. */
export const NAMES = ["a", "b", "c", "d", "é", LONG_NAME] as const;

/** A codebase of files, directories, links and hard links, three levels deep. */
export function randomTree(random: Random): Tree {
  const top = randomDirectory(random, 0);
  return { ...top, original: "one file, two names in the codebase", again: hardlink("original") };
}

function randomDirectory(random: Random, depth: number): Tree {
  const entries: Record<string, Tree[string]> = {};
  for (const name of NAMES) {
    const kind = random.weighted({ none: 30, file: 35, directory: depth < 2 ? 30 : 0, emptyDirectory: 5, link: 8 });
    if (kind === "file") {
      const mtime = 1_000_000_000 + random.below(100_000_000);
      const mode = random.pick([0o644, 0o755, 0o600]);
      entries[name] = file({ content: random.text(random.pick([0, 7, 3000, 70_000])), mode, mtime });
    }
    if (kind === "directory") entries[name] = randomDirectory(random, depth + 1);
    if (kind === "emptyDirectory") entries[name] = {};
    if (kind === "link") entries[name] = link(random.pick(["a", "b/c", "nowhere", "d"]));
  }
  return entries;
}
