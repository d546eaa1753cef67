import { RuntimeError } from "./errors.ts";

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

/** A token holds the sort key of the last item of its page. */
export function encodePageToken(key: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(key), "utf8").toString("base64url");
}

export function decodePageToken<Key extends readonly (string | number)[]>(
  token: string,
  isKey: (value: unknown) => value is Key,
): Key | undefined {
  if (token === "") return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (isKey(value)) return value;
  } catch {
    // Not one of ours: the error below says so.
  }
  throw new RuntimeError("INVALID_ARGUMENT", "page_token is not one that this server gave out");
}
