import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SERVER } from "../../../src/runtime/caller.ts";
import type { BatchPiece, StagedEntry } from "../../../src/runtime/codebases/api.ts";
import { chunks, pieces, type Store } from "./opening.ts";

// What codebases should do, on plain values: a state is "644 content", "-> target" or "755/" by path.

export type State = ReadonlyMap<string, string>;

export type Operation =
  | { readonly kind: "upload"; readonly path: string; readonly mode: number; readonly text: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "batch"; readonly entries: readonly Entry[]; readonly replaceAll: boolean }
  | { readonly kind: "delete"; readonly path: string }
  | { readonly kind: "rename"; readonly from: string; readonly to: string }
  | { readonly kind: "rollback"; readonly version: number }
  | { readonly kind: "sync"; readonly entries: readonly Entry[] };

export type Entry = readonly [path: string, value: string | undefined];

/** The state after an operation; undefined: it is refused and changes nothing. */
export function expected(state: State, operation: Operation, history: readonly State[]): State | undefined {
  const next = new Map(state);
  switch (operation.kind) {
    case "upload":
    case "link": {
      const { path } = operation;
      if (state.get(path)?.endsWith("/") || !isFree(state, path)) return undefined;
      const value = operation.kind === "link" ? `-> ${operation.target}` : fileValue(operation.mode, operation.text);
      put(next, path, value);
      return next;
    }
    case "batch":
      return afterBatch(state, operation);
    case "sync":
      for (const [path, value] of operation.entries) if (value === undefined) next.delete(path);
      for (const [path, value] of operation.entries) if (value !== undefined) put(next, path, value);
      return next;
    case "delete":
      if (!state.has(operation.path)) return undefined;
      remove(next, operation.path);
      return next;
    case "rename": {
      const { from, to } = operation;
      if (!state.has(from) || state.has(to) || !isFree(state, to) || `${to}/`.startsWith(`${from}/`)) return undefined;
      const moved = [...state].filter(([path]) => path === from || path.startsWith(`${from}/`));
      for (const [path] of moved) next.delete(path);
      for (const [path, value] of moved) put(next, to + path.slice(from.length), value);
      return next;
    }
    case "rollback":
      return history[operation.version];
  }
}

function afterBatch(state: State, { entries, replaceAll }: Extract<Operation, { kind: "batch" }>): State | undefined {
  const named = new Map(entries);
  for (const [path, value] of entries) {
    if (value === undefined) continue;
    for (const above of ancestors(path)) {
      if (named.has(above) && !named.get(above)?.endsWith("/")) return undefined;
      const there = state.get(above);
      if (!named.has(above) && !replaceAll && there !== undefined && !there.endsWith("/")) return undefined;
    }
  }
  const next = new Map(state);
  for (const [path, value] of entries) if (value === undefined) remove(next, path);
  for (const [path, value] of entries) if (value !== undefined) put(next, path, value);
  if (!replaceAll) return next;
  const needed = new Set(entries.flatMap(([path, value]) => (value === undefined ? [] : ancestors(path))));
  for (const path of state.keys()) if (!named.has(path) && !needed.has(path)) next.delete(path);
  return next;
}

function put(state: Map<string, string>, path: string, value: string): void {
  for (const above of ancestors(path)) if (!state.get(above)?.endsWith("/")) state.set(above, "755/");
  if (!value.endsWith("/")) remove(state, path);
  state.set(path, value);
}

function remove(state: Map<string, string>, path: string): void {
  for (const other of [...state.keys()]) if (other === path || other.startsWith(`${path}/`)) state.delete(other);
}

function isFree(state: State, path: string): boolean {
  return ancestors(path).every((above) => state.get(above)?.endsWith("/") ?? true);
}

function ancestors(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join("/"));
}

export function fileValue(mode: number, text: string): string {
  return `${mode.toString(8)} ${text}`;
}

export function equal(a: State, b: State): boolean {
  return a.size === b.size && [...a].every(([path, value]) => b.get(path) === value);
}

/** Does it to a real codebase. */
export async function perform(store: Store, id: string, operation: Operation): Promise<unknown> {
  switch (operation.kind) {
    case "upload":
      return await store.upload(SERVER, id, operation.path, chunks(operation.text), { mode: operation.mode });
    case "link":
      return await store.link(SERVER, id, operation.path, operation.target);
    case "batch":
      return await store.batch(SERVER, id, pieces(...operation.entries.map(pieceOf)), {
        replaceAll: operation.replaceAll,
      });
    case "delete":
      return await store.deleteFile(SERVER, id, operation.path, { recursive: true });
    case "rename":
      return await store.renameFile(SERVER, id, operation.from, operation.to);
    case "rollback":
      return await store.rollback(SERVER, id, operation.version);
    case "sync":
      return await store.sync(id, "sb_0123456789abcdef", async (staging) =>
        operation.entries.map((entry, index) => stagedEntry(entry, staging, index)),
      );
  }
}

function pieceOf([path, value]: Entry): BatchPiece {
  if (value === undefined) return { entry: { kind: "absent", path } };
  if (value.startsWith("-> ")) return { entry: { kind: "symlink", path, target: value.slice(3) } };
  if (value.endsWith("/")) return { entry: { kind: "directory", path, mode: Number.parseInt(value, 8) } };
  const { mode, text } = parseFile(value);
  const entry = { kind: "file", path, mode, size: text.length, sha256: hash(text) } as const;
  return { entry, data: Buffer.from(text) };
}

function stagedEntry([path, value]: Entry, staging: string, index: number): StagedEntry {
  const common = { path, mode: 0, target: "", size: 0, sha256: "", staged: "", madeAtMs: Date.now() };
  if (value === undefined) return { ...common, kind: "absent" };
  const { mode, text } = parseFile(value);
  writeFileSync(join(staging, `s${index}`), text);
  return { ...common, kind: "file", mode, size: text.length, sha256: hash(text), staged: `s${index}` };
}

function parseFile(value: string): { readonly mode: number; readonly text: string } {
  const space = value.indexOf(" ");
  return { mode: Number.parseInt(value.slice(0, space), 8), text: value.slice(space + 1) };
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** What a version is, by the manifest and the content that it gives out. */
export async function readVersion(store: Store, id: string, version: number): Promise<State> {
  const query = { path: "", recursive: true, version, pageSize: 0, pageToken: "" };
  const { items } = await store.listFiles(SERVER, id, query);
  const state = new Map<string, string>();
  for (const { path, kind, mode, target, size, sha256 } of items) {
    if (kind === "directory") state.set(path, `${mode.toString(8)}/`);
    else if (kind === "symlink") state.set(path, `-> ${target}`);
    else {
      const { content } = await store.download(SERVER, id, path, { version });
      const parts: Uint8Array[] = [];
      for await (const part of content) parts.push(part);
      const text = Buffer.concat(parts).toString("utf8");
      if (text.length !== size || hash(text) !== sha256) throw new Error(`${path} is not what the manifest says`);
      state.set(path, fileValue(mode, text));
    }
  }
  return state;
}

/** Numbers that look random and are the same for the same seed. */
export function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/**
 * An operation that the state allows and that changes it, for the step with this number, which makes the version with this
 * number. `kept` is how many versions there are to go back to; 0: all.
 */
export function scripted(step: number, state: State, history: readonly State[], kept = 0): Operation {
  const random = randomOf(step * 7919);
  const counter: Entry = ["counter", fileValue(0o644, String(step))];
  const name = (): string => `d${random(4)}/${["x", "y/z", "w"][random(3)]}${random(6)}`;
  const files = [...state.keys()].filter((path) => /^[0-7]+ /.test(state.get(path)!)).sort();
  const some = (count: number): Entry[] => [
    ...new Map(Array.from({ length: count }, () => [name(), fileValue(0o644, `${step} `.repeat(random(3000)))])),
  ];
  switch (random(7)) {
    case 0:
      return { kind: "upload", path: "counter", mode: 0o644, text: `${step}:${"u".repeat(random(400_000))}` };
    case 1:
    case 2:
      return { kind: "batch", entries: [counter, ...some(30)], replaceAll: false };
    case 3:
      return { kind: "batch", entries: [counter, ...some(10)], replaceAll: random(2) === 0 };
    case 4:
      return { kind: "sync", entries: [counter, ...some(15)] };
    case 5: {
      const from = files[random(files.length)];
      if (from !== undefined && from !== "counter") return { kind: "rename", from, to: `moved/${step}` };
      return { kind: "batch", entries: [counter], replaceAll: false };
    }
    default: {
      const oldest = kept === 0 ? 1 : Math.max(1, step - kept);
      const version = oldest + random(Math.max(1, history.length - oldest));
      const target = history[version];
      if (target !== undefined && !equal(target, state)) return { kind: "rollback", version };
      return { kind: "batch", entries: [counter, ...some(5)], replaceAll: false };
    }
  }
}
