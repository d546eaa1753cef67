import { RuntimeError } from "./runtime-error.ts";

/** A part of a list. `pageSize` 0 means the default. Tokens are opaque to callers. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Empty: that was all. */
  readonly nextPageToken: string;
}

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

/** How many a page has: 100 unless asked, never more than 1000. */
export function pageLimit(pageSize: number): number {
  return pageSize <= 0 ? DEFAULT_PAGE : Math.min(pageSize, LARGEST_PAGE);
}

type Kinds = readonly ("string" | "number")[];
type Key<K extends Kinds> = { readonly [At in keyof K]: K[At] extends "number" ? number : string };

/** Makes a page of what was found, which is one more than the page holds if there is more. Its token holds the sort key of its last item. */
export function pageOf<T>(
  found: readonly T[],
  limit: number,
  keyOf: (item: T) => readonly (string | number)[],
): Page<T> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, nextPageToken: found.length > limit && last !== undefined ? encodePageToken(keyOf(last)) : "" };
}

export function encodePageToken(key: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(key), "utf8").toString("base64url");
}

/** The sort key in a token, whose parts are of these kinds; undefined for the first page. */
export function decodePageToken<const K extends Kinds>(token: string, kinds: K): Key<K> | undefined {
  if (token === "") return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    const isKey =
      Array.isArray(value) &&
      value.length === kinds.length &&
      kinds.every((kind, at) => (kind === "number" ? Number.isSafeInteger(value[at]) : typeof value[at] === kind));
    if (isKey) return value as unknown as Key<K>;
  } catch {
    // Not one of ours: the error below says so.
  }
  throw new RuntimeError("INVALID_ARGUMENT", "page_token is not one that this server gave out");
}
