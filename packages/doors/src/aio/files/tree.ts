import { setImmediate as otherWork } from "node:timers/promises";
import type { FileStat } from "@agentfense/sdk";
import * as shape from "../../shape.ts";
import { Refusal } from "../envelope.ts";
import { relativeTo, WORKSPACE } from "../paths.ts";
import { type AioCall, post, type Route } from "../route.ts";
import { fileAt } from "./content.ts";
import { onFile } from "./file-refusal.ts";
import { globPattern, namePattern } from "./glob-pattern.ts";
import type { FileAt } from "./text.ts";

// Listings. What is hidden is not in them; what may only be looked at is.

const pattern = shape.string().min(1).max(256);
export const PATTERNS = shape.listOrOne(pattern).max(16);

const listInput = shape.object({
  path: shape.string(),
  recursive: shape.boolean().default(false),
  show_hidden: shape.boolean().default(true),
  file_types: shape.list(shape.string().max(64)).max(100).optional(),
  max_depth: shape.int().min(1).optional(),
  include_size: shape.boolean().default(true),
  include_permissions: shape.boolean().default(false),
  sort_by: shape.oneOf(["name", "size", "modified", "type"]).default("name"),
  sort_desc: shape.boolean().default(false),
});

const globInput = shape.object({
  path: shape.string(),
  pattern,
  exclude: PATTERNS.optional(),
  include_hidden: shape.boolean().default(false),
  files_only: shape.boolean().default(true),
  include_metadata: shape.boolean().default(true),
  max_results: shape.int().min(1).max(100_000).default(5000),
  sort_by: shape.oneOf(["path", "name", "size", "modified"]).default("path"),
  sort_desc: shape.boolean().default(false),
});

export const TREE_ROUTES: readonly Route[] = [
  post("v1/file/list", listInput, list),
  post("v1/file/find", shape.object({ path: shape.string(), glob: pattern }), find),
  post("v1/file/glob", globInput, glob),
];

/** What is below a directory, by "/workspace/…" and by its path within the directory. */
export interface TreeEntry {
  readonly path: string;
  readonly relative: string;
  readonly stat: FileStat;
}

export async function entriesBelow(at: FileAt, { recursive }: { readonly recursive: boolean }): Promise<TreeEntry[]> {
  const { sandbox, signal } = at;
  const stats = await onFile(at, () =>
    sandbox.files.readdir(at.path, { recursive, withFileTypes: true as const, signal }),
  );
  return stats.map((stat) => {
    const path = `${WORKSPACE}${stat.path}`;
    return { path, relative: relativeTo(at.path, path), stat };
  });
}

function isHidden(relative: string): boolean {
  return relative.split("/").some((name) => name.startsWith("."));
}

async function list(call: AioCall, input: shape.Value<typeof listInput>): Promise<unknown> {
  const { recursive, show_hidden, file_types, max_depth = Number.POSITIVE_INFINITY } = input;
  const at = fileAt(call, input.path, "list");
  const endings = file_types?.map((type) => (type.startsWith(".") ? type : `.${type}`));
  const entries = await chosen(await entriesBelow(at, { recursive }), ({ relative, stat }) => {
    if (!show_hidden && isHidden(relative)) return false;
    if (relative.split("/").length > max_depth) return false;
    return endings === undefined || stat.isDirectory() || endings.some((ending) => stat.name.endsWith(ending));
  });
  const directories = entries.filter(({ stat }) => stat.isDirectory()).length;
  const files = sorted(entries, input.sort_by, input.sort_desc).map(({ path, stat }) => ({
    ...described(path, stat),
    size: input.include_size && stat.isFile() ? stat.size : null,
    permissions: input.include_permissions ? (stat.mode & 0o777).toString(8).padStart(3, "0") : null,
    extension: stat.isDirectory() ? null : extensionOf(stat.name),
  }));
  return {
    path: input.path,
    files,
    total_count: files.length,
    directory_count: directories,
    file_count: files.length - directories,
  };
}

async function find(call: AioCall, input: { readonly path: string; readonly glob: string }): Promise<unknown> {
  const entries = await entriesBelow(fileAt(call, input.path, "find"), { recursive: true });
  const isMeant = meaning(input.glob);
  const found = await chosen(entries, ({ relative }) => isMeant(relative));
  return { path: input.path, files: found.map(({ path }) => path).sort() };
}

async function glob(call: AioCall, input: shape.Value<typeof globInput>): Promise<unknown> {
  const entries = await entriesBelow(fileAt(call, input.path, "glob"), { recursive: true });
  const isMeant = globPattern(input.pattern);
  const excluded = input.exclude?.map(exclusion) ?? [];
  const found = await chosen(entries, ({ relative, stat }) => {
    if (input.files_only && stat.isDirectory()) return false;
    if (!input.include_hidden && isHidden(relative)) return false;
    return isMeant(relative) && !excluded.some((isExcluded) => isExcluded(relative));
  });
  const files = sorted(found, input.sort_by, input.sort_desc)
    .slice(0, input.max_results)
    .map(({ path, stat }) => {
      const { name, is_directory, size, modified_time } = described(path, stat);
      return input.include_metadata ? { path, name, is_directory, size, modified_time } : { path, name, is_directory };
    });
  return {
    path: input.path,
    pattern: input.pattern,
    files,
    total_count: found.length,
    truncated: found.length > files.length,
  };
}

/** A pattern without a slash means a name anywhere below. */
export function meaning(glob: string): (relative: string) => boolean {
  if (glob.includes("/")) return globPattern(glob);
  const isMeant = namePattern(glob);
  return (relative) => isMeant(relative.slice(relative.lastIndexOf("/") + 1));
}

/** What is below something excluded is excluded. */
export function exclusion(glob: string): (relative: string) => boolean {
  if (!glob.includes("/")) {
    const isName = namePattern(glob);
    return (relative) => relative.split("/").some(isName);
  }
  const [itself, below] = [globPattern(glob), globPattern(`${glob}/**`)];
  return (relative) => itself(relative) || below(relative);
}

const AT_A_TIME = 100;
const LONGEST_CHOICE_MS = 5000;

/** A filter that lets others work in between, and gives up on what was made to take long. */
export async function chosen<T>(items: readonly T[], isChosen: (item: T) => boolean): Promise<T[]> {
  const endsAt = performance.now() + LONGEST_CHOICE_MS;
  const found: T[] = [];
  for (const [at, item] of items.entries()) {
    if (at % AT_A_TIME === AT_A_TIME - 1) {
      await otherWork();
      if (performance.now() > endsAt) throw new Refusal("the search takes too long", { hint: "use a simpler pattern" });
    }
    if (isChosen(item)) found.push(item);
  }
  return found;
}

function sorted(entries: readonly TreeEntry[], by: string, descending: boolean): TreeEntry[] {
  const order = ORDERS[by] ?? ORDERS.path!;
  const ascending = [...entries].sort((a, b) => order(a, b) || compare(a.path, b.path));
  return descending ? ascending.reverse() : ascending;
}

const ORDERS: Readonly<Record<string, (a: TreeEntry, b: TreeEntry) => number>> = {
  path: (a, b) => compare(a.path, b.path),
  name: (a, b) => compare(a.stat.name, b.stat.name),
  size: (a, b) => a.stat.size - b.stat.size,
  modified: (a, b) => a.stat.modifiedAt.getTime() - b.stat.modifiedAt.getTime(),
  type: (a, b) => compare(a.stat.kind, b.stat.kind),
};

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function described(path: string, stat: FileStat) {
  return {
    name: stat.name,
    path,
    is_directory: stat.isDirectory(),
    size: stat.isFile() ? stat.size : null,
    modified_time: stat.modifiedAt.toISOString(),
  };
}

function extensionOf(name: string): string | null {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot) : null;
}
