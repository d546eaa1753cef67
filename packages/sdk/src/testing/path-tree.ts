import { posix } from "node:path";
import { namesIn } from "@agentfense/permission";
import { invalid } from "./faults.ts";

// Paths in their one normal form: "/src/a.ts", "/" for the root.

const WORKSPACE = "/workspace";

/** What a client wrote of a codebase's files: "src/a.ts" and "/src/a.ts" are one. */
export function normalPath(path: string, field = "path"): string {
  if (path.includes("\0")) throw invalid(`${field} contains a NUL character`);
  const names = namesIn(path);
  if (names.includes("..")) throw invalid(`${field} has a .. in it; name the file from the root`);
  return `/${names.join("/")}`;
}

/** The same of a sandbox's files, where "/workspace/src/a.ts" is that one too. */
export function workspacePath(path: string, field = "path"): string {
  return normalPath(/^\/workspace(\/|$)/.test(path) ? path.slice(WORKSPACE.length) : path, field);
}

/** Any but the root, which is always there and stays. */
export function notRoot(path: string, field = "path"): string {
  if (path === "/") throw invalid(`${field} is the root itself`);
  return path;
}

/** As a process inside would name it. */
export function insidePath(path: string): string {
  return path === "/" ? WORKSPACE : `${WORKSPACE}${path}`;
}

export const { basename: nameOf, dirname: parentOf, join: joined } = posix;

/** "/a", "/a/b" for "/a/b/c". */
export function ancestorsOf(path: string): string[] {
  const found: string[] = [];
  for (let at = path.indexOf("/", 1); at >= 0; at = path.indexOf("/", at + 1)) found.push(path.slice(0, at));
  return found;
}

export function isAtOrBelow(path: string, directory: string): boolean {
  return directory === "/" || path === directory || path.startsWith(`${directory}/`);
}

export function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : 1;
}

/** Values by path, with the names in each directory at hand. "/" has no value. */
export class PathTree<Value> {
  readonly #values = new Map<string, Value>();
  readonly #names = new Map<string, Set<string>>();

  get(path: string): Value | undefined {
    return this.#values.get(path);
  }

  set(path: string, value: Value): void {
    this.#values.set(path, value);
    const directory = parentOf(path);
    const names = this.#names.get(directory) ?? new Set();
    this.#names.set(directory, names.add(nameOf(path)));
  }

  delete(path: string): void {
    this.#values.delete(path);
    this.#names.get(parentOf(path))?.delete(nameOf(path));
  }

  /** With all below it. */
  remove(path: string): void {
    for (const below of this.below(path)) this.delete(below);
    this.delete(path);
  }

  /** In order. */
  names(directory: string): string[] {
    return [...(this.#names.get(directory) ?? [])].sort();
  }

  /** Every path strictly below, a directory before what is in it. */
  below(directory: string): string[] {
    return this.names(directory).flatMap((name) => {
      const path = joined(directory, name);
      return [path, ...this.below(path)];
    });
  }

  *[Symbol.iterator](): Iterator<[path: string, value: Value]> {
    for (const path of this.below("/")) yield [path, this.#values.get(path)!];
  }

  copy(): PathTree<Value> {
    const copy = new PathTree<Value>();
    for (const [path, value] of this.#values) copy.set(path, value);
    return copy;
  }
}
