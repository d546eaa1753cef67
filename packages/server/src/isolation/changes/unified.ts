import { diffLines, type Edit, linesOf } from "./lines.ts";

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
