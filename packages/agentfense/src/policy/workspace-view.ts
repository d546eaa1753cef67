import { type Dirent, readdirSync } from "node:fs";
import { nameText, type Scope } from "@agentfense/permission";

/** One entry of a directory on disk together with what the rules say about it. */
export interface ViewEntry {
  /** In the workspace: `/src/main.c`. */
  readonly path: string;
  readonly name: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  readonly scope: Scope;
  /** On disk, as the bytes it really has. */
  readonly location: Buffer;
}

const SLASH = Buffer.from("/");

/** The workspace root: it exists whatever its level. */
export function rootEntry(directory: string, scope: Scope): ViewEntry {
  return { path: "/", name: "/", type: "directory", scope, location: Buffer.from(directory) };
}

/** What is in a directory, in the order of the bytes of the names. Never follows a link. */
function entriesOf(directory: ViewEntry): ViewEntry[] {
  const found = readdirSync(directory.location, { withFileTypes: true, encoding: "buffer" });
  found.sort((a, b) => Buffer.compare(a.name, b.name));
  return found.map((entry) => {
    const name = nameText(entry.name);
    return {
      path: directory.path === "/" ? `/${name}` : `${directory.path}/${name}`,
      name,
      type: typeOf(entry),
      scope: directory.scope.child(name),
      location: Buffer.concat([directory.location, SLASH, entry.name]),
    };
  });
}

/** What is at a path on disk, going down name by name: a link on the way leads nowhere. */
export function findEntry(root: ViewEntry, names: readonly string[]): ViewEntry | undefined {
  let at: ViewEntry | undefined = root;
  for (const name of names) {
    if (at?.type !== "directory") return undefined;
    at = tryEntriesOf(at).entries.find((entry) => entry.name === name);
  }
  return at;
}

/**
 * How an agent meets an entry: by its own level; as a passage, a directory that no rule shows but that leads to something
 * visible; or not at all.
 */
export function appearanceOf(entry: ViewEntry): "own" | "passage" | "hidden" {
  if (entry.scope.level > 0) return "own";
  if (entry.path === "/") return "passage";
  return entry.type === "directory" && entry.scope.mayShowBelow && holdsVisible(entry) ? "passage" : "hidden";
}

function holdsVisible(directory: ViewEntry): boolean {
  return tryEntriesOf(directory).entries.some((entry) => appearanceOf(entry) !== "hidden");
}

/** Like `entriesOf`; a directory that cannot be read is empty, with the reason. */
export function tryEntriesOf(directory: ViewEntry): { entries: ViewEntry[]; error?: string } {
  try {
    return { entries: entriesOf(directory) };
  } catch (error) {
    return { entries: [], error: (error as NodeJS.ErrnoException).code ?? String(error) };
  }
}

function typeOf(entry: Dirent<Buffer>): ViewEntry["type"] {
  if (entry.isDirectory()) return "directory";
  if (entry.isSymbolicLink()) return "symlink";
  return entry.isFile() ? "file" : "other";
}
