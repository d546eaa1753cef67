/** The name that was probably meant: the nearest of those that are a slip of the finger away. */
export function nearestName(given: string, names: Iterable<string>): string | undefined {
  const near = [...names]
    .map((name) => ({ name, distance: slips(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(name.length / 3)))
    .sort((one, other) => one.distance - other.distance);
  return near[0]?.name;
}

/** Insertions, deletions, replacements and swaps of neighbours. Beyond 64 characters nothing is near. */
function slips(one: string, other: string): number {
  if (one.length > 64 || other.length > 64) return Number.POSITIVE_INFINITY;
  const rows = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    const last = rows[row - 1]!;
    for (let column = 1; column <= other.length; column += 1) {
      const same = one[row - 1] === other[column - 1];
      const swapped = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      next.push(
        Math.min(
          last[column]! + 1,
          next[column - 1]! + 1,
          last[column - 1]! + (same ? 0 : 1),
          swapped ? rows[row - 2]![column - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    rows.push(next);
  }
  return rows[one.length]![other.length]!;
}
