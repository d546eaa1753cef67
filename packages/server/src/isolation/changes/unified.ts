/** Lines of agreement around each difference. */
const CONTEXT = 3;

export interface UnifiedDiff {
  /** `@@` hunks; empty when the texts are equal. */
  readonly text: string;
  readonly added: number;
  readonly removed: number;
}

export function unifiedDiff(old: string, now: string): UnifiedDiff {
  const [a, b] = [linesOf(old), linesOf(now)];
  const edits = diffLines(a, b);
  return {
    text: hunksOf(edits)
      .map((hunk) => hunkText(hunk, a, b))
      .join(""),
    added: edits.reduce((sum, edit) => sum + edit.added, 0),
    removed: edits.reduce((sum, edit) => sum + edit.removed, 0),
  };
}

/** Lines with their line feeds: one that lacks it at the end of the file is another line. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Edits whose context meets share a hunk. */
function hunksOf(edits: readonly Edit[]): Edit[][] {
  const hunks: Edit[][] = [];
  for (const edit of edits) {
    const hunk = hunks.at(-1);
    const last = hunk?.at(-1);
    if (hunk && last && edit.oldStart - (last.oldStart + last.removed) <= 2 * CONTEXT) hunk.push(edit);
    else hunks.push([edit]);
  }
  return hunks;
}

function hunkText(hunk: readonly Edit[], a: readonly string[], b: readonly string[]): string {
  const [first, last] = [hunk[0]!, hunk.at(-1)!];
  const before = Math.min(CONTEXT, first.oldStart);
  const oldStart = first.oldStart - before;
  const newStart = first.newStart - before;
  const oldEnd = Math.min(a.length, last.oldStart + last.removed + CONTEXT);
  const newEnd = last.newStart + last.added + (oldEnd - (last.oldStart + last.removed));
  const lines: string[] = [];
  let at = oldStart;
  for (const edit of hunk) {
    for (const line of a.slice(at, edit.oldStart)) lines.push(` ${line}`);
    for (const line of a.slice(edit.oldStart, edit.oldStart + edit.removed)) lines.push(`-${line}`);
    for (const line of b.slice(edit.newStart, edit.newStart + edit.added)) lines.push(`+${line}`);
    at = edit.oldStart + edit.removed;
  }
  for (const line of a.slice(at, oldEnd)) lines.push(` ${line}`);
  const body = lines.map((line) => (line.endsWith("\n") ? line : `${line}\n\\ No newline at end of file\n`)).join("");
  return `@@ -${range(oldStart, oldEnd)} +${range(newStart, newEnd)} @@\n${body}`;
}

/** Line numbers begin at 1; an empty range names the line before it. */
function range(start: number, end: number): string {
  const count = end - start;
  const first = count === 0 ? start : start + 1;
  return count === 1 ? `${first}` : `${first},${count}`;
}

/** `count` lines of the old text from `oldStart` gave way to `added` lines of the new one from `newStart`. */
export interface Edit {
  readonly oldStart: number;
  readonly removed: number;
  readonly newStart: number;
  readonly added: number;
}

/** Beyond this many differences within one stretch it counts as replaced: correct still, only not minimal. */
const DIFFERENCES_LIMIT = 1000;

/**
 * Which lines differ, by Myers' algorithm in linear space ("An O(ND) Difference Algorithm and Its Variations", 1986,
 * section 4b): the middle of a shortest edit path is found from both ends at once, and both halves are solved alike.
 */
export function diffLines(old: readonly string[], now: readonly string[]): Edit[] {
  const [a, b] = numbered(old, now);
  const edits: Edit[] = [];
  // Stretches still to be compared, the first on top. A stack of our own: texts can be long and much alike.
  const stretches: Stretch[] = [{ a0: 0, a1: a.length, b0: 0, b1: b.length }];
  for (let next = stretches.pop(); next !== undefined; next = stretches.pop()) {
    let { a0, a1, b0, b1 } = next;
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) {
      a0 += 1;
      b0 += 1;
    }
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) {
      a1 -= 1;
      b1 -= 1;
    }
    if (a0 === a1 && b0 === b1) continue;
    const middle = a0 === a1 || b0 === b1 ? undefined : findMiddle(a, b, { a0, a1, b0, b1 });
    if (middle === undefined) record(edits, { oldStart: a0, removed: a1 - a0, newStart: b0, added: b1 - b0 });
    else {
      stretches.push({ a0: middle.x, a1, b0: middle.y, b1 }, { a0, a1: middle.x, b0, b1: middle.y });
    }
  }
  return edits;
}

interface Stretch {
  readonly a0: number;
  readonly a1: number;
  readonly b0: number;
  readonly b1: number;
}

/**
 * A point in the middle of a shortest edit path, strictly inside the stretch; undefined if the limit is reached first.
 * `forward[k]` is how far down the old text a path from the start gets on diagonal k (old minus new position);
 * `backward[k]` the same from the end.
 */
function findMiddle(a: Int32Array, b: Int32Array, stretch: Stretch): Point | undefined {
  const { a0, a1, b0, b1 } = stretch;
  const [n, m] = [a1 - a0, b1 - b0];
  const delta = n - m;
  const limit = Math.min(Math.ceil((n + m) / 2), DIFFERENCES_LIMIT);
  const origin = limit + 1;
  const forward = new Int32Array(2 * limit + 3);
  const backward = new Int32Array(2 * limit + 3);
  for (let d = 0; d <= limit; d++) {
    for (let k = -d; k <= d; k += 2) {
      let x = step(forward, origin + k, k === -d, k === d);
      while (x >= 0 && x < n && x >= k && x - k < m && a[a0 + x] === b[b0 + x - k]) x += 1;
      const inside = x >= 0 && x <= n && x >= k && x - k <= m;
      forward[origin + k] = inside ? x : NOWHERE;
      const mirror = delta - k;
      if (!inside || delta % 2 === 0 || Math.abs(mirror) >= d || x + backward[origin + mirror]! < n) continue;
      return within(stretch, { x: a0 + x, y: b0 + x - k });
    }
    for (let k = -d; k <= d; k += 2) {
      let x = step(backward, origin + k, k === -d, k === d);
      while (x >= 0 && x < n && x >= k && x - k < m && a[a1 - 1 - x] === b[b1 - 1 - x + k]) x += 1;
      const inside = x >= 0 && x <= n && x >= k && x - k <= m;
      backward[origin + k] = inside ? x : NOWHERE;
      const mirror = delta - k;
      if (!inside || delta % 2 !== 0 || Math.abs(mirror) > d || x + forward[origin + mirror]! < n) continue;
      return within(stretch, { x: a1 - x, y: b1 - x + k });
    }
  }
  return undefined;
}

/** A diagonal that no path inside the stretch reaches; far from becoming a position by adding one now and then. */
const NOWHERE = -(2 ** 30);

interface Point {
  readonly x: number;
  readonly y: number;
}

// Splitting at a corner would leave the same stretch again, for ever.
function within({ a0, a1, b0, b1 }: Stretch, point: Point): Point | undefined {
  const corner = (point.x === a0 && point.y === b0) || (point.x === a1 && point.y === b1);
  return corner ? undefined : point;
}

/** The furthest a path with one difference more gets before it follows equal lines: one down, or one to the right. */
function step(reach: Int32Array, at: number, lowest: boolean, highest: boolean): number {
  const down = reach[at + 1]!;
  const right = reach[at - 1]! + 1;
  if (lowest) return down;
  return highest || right > down ? right : down;
}

/** Edits that touch are one. */
function record(edits: Edit[], edit: Edit): void {
  const last = edits.at(-1);
  const touches =
    last && last.oldStart + last.removed === edit.oldStart && last.newStart + last.added === edit.newStart;
  if (!touches) edits.push(edit);
  else edits[edits.length - 1] = { ...last, removed: last.removed + edit.removed, added: last.added + edit.added };
}

/** Equal lines get equal numbers, so that comparing two is comparing numbers. */
function numbered(old: readonly string[], now: readonly string[]): [Int32Array, Int32Array] {
  const numbers = new Map<string, number>();
  const numberOf = (line: string): number => {
    const known = numbers.get(line) ?? numbers.size;
    numbers.set(line, known);
    return known;
  };
  return [Int32Array.from(old, numberOf), Int32Array.from(now, numberOf)];
}
