import type { CodebaseMetadata, EntryRecord } from "../store/store.ts";
import { ancestorsOf } from "./paths.ts";
import type { Wanted } from "./wanted.ts";

/** The part of a manifest that a change has to do with: what is at its paths, on the way to them, and below them. */
export interface Surroundings {
  entry(path: string): EntryRecord | undefined;
  /** All below a directory that may have to go, in path order. */
  below(directory: string): readonly EntryRecord[];
}

export async function loadSurroundings(
  store: Pick<CodebaseMetadata, "entries" | "listEntries">,
  codebaseId: string,
  wanted: readonly Wanted[],
  options: { readonly everything: boolean },
): Promise<Surroundings> {
  const known = new Map<string, EntryRecord>();
  const lists = new Map<string, readonly EntryRecord[]>();
  if (options.everything) {
    const all = await store.listEntries(codebaseId, { directory: "", recursive: true });
    for (const entry of all) known.set(entry.path, entry);
    lists.set("", all);
  } else {
    const paths = [...new Set(wanted.flatMap(({ path }) => [...ancestorsOf(path), path]))];
    for (const entry of await store.entries(codebaseId, paths)) if (entry !== undefined) known.set(entry.path, entry);
  }
  for (const { kind, path } of wanted) {
    if (kind === "directory" || known.get(path)?.kind !== "directory") continue;
    const list = await store.listEntries(codebaseId, { directory: path, recursive: true });
    for (const entry of list) known.set(entry.path, entry);
    lists.set(path, list);
  }
  return {
    entry: (path) => known.get(path),
    below: (directory) => lists.get(directory) ?? [],
  };
}
