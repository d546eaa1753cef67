import type { Listing } from "./caller.ts";

/** How two listings differ, a line for each path and side; empty when they are equal. */
export function listingDifferences(expected: Listing, got: Listing): string[] {
  const paths = [...new Set([...Object.keys(expected), ...Object.keys(got)])].sort();
  return paths.flatMap((path) => {
    const sides = [expected[path], got[path]].map(
      (entry) => JSON.stringify(entry, Object.keys(entry ?? {}).sort()) ?? "absent",
    );
    return sides[0] === sides[1] ? [] : [`${path}: expected ${sides[0]}, got ${sides[1]}`];
  });
}
