import { type Edit, histogramDiff, type LineDiff, linesOf } from "../changes/lines.ts";

/** Lines of a text, by the first and how many. */
export interface LineRange {
  readonly start: number;
  readonly count: number;
}

/** Where both sides changed the same lines, and not in the same way. */
export interface Hunk {
  /** Lines of the base that both sides changed; parts of one change that were told apart share them. */
  readonly base: LineRange;
  readonly ours: LineRange;
  readonly theirs: LineRange;
}

/** Whose lines stand where both changed them. */
export type Favour = "ours" | "theirs" | "union";

export interface TextMergeOptions {
  /** How conflicts are settled; otherwise the merged text has markers there. */
  readonly favour?: Favour | undefined;
  /** What the markers call the sides. */
  readonly labels?: { readonly ours: string; readonly theirs: string } | undefined;
  /** git merge's, the histogram algorithm, unless another is given. */
  readonly diff?: LineDiff;
  /** Also draws conflicts together that only lines without a letter or digit keep apart, as git merge-file does. */
  readonly joinsAcrossBlanks?: boolean;
}

export interface MergedText {
  /** With markers at conflicts that nothing settled. */
  readonly text: string;
  readonly hunks: readonly Hunk[];
}

/**
 * Merges two texts that come from one, as git does: bit by bit the same text, the markers included. Texts are byte strings
 * (latin1), and lines end where a line feed is.
 */
export function mergeText(base: string, ours: string, theirs: string, options: TextMergeOptions = {}): MergedText {
  const { diff = histogramDiff, joinsAcrossBlanks = false } = options;
  const texts = { base: linesOf(base), ours: linesOf(ours), theirs: linesOf(theirs) };
  const [left, right] = [diff(texts.base, texts.ours), diff(texts.base, texts.theirs)];
  if (left.length === 0) return { text: theirs, hunks: [] };
  if (right.length === 0) return { text: ours, hunks: [] };
  const parts = joined(refined(overlay(texts, left, right), texts, diff), texts, joinsAcrossBlanks);
  return {
    text: new Writer(texts, options).write(parts),
    hunks: parts.flatMap((part) =>
      part.from === "both" ? [{ base: part.base, ours: part.ours, theirs: part.theirs }] : [],
    ),
  };
}

interface Texts {
  readonly base: readonly string[];
  readonly ours: readonly string[];
  readonly theirs: readonly string[];
}

/** A stretch in which the sides differ: changed by one of them, or by both; outside of all parts they are equal. */
interface Part {
  readonly from: "ours" | "theirs" | "both";
  readonly base: LineRange;
  readonly ours: LineRange;
  readonly theirs: LineRange;
}

/** Both lists of edits along the base. What both did alike is no part, for the sides are equal there. */
function overlay(texts: Texts, left: readonly Edit[], right: readonly Edit[]): Part[] {
  const parts: Part[] = [];
  const [oursAhead, theirsAhead] = [texts.ours.length - texts.base.length, texts.theirs.length - texts.base.length];
  let [l, r] = [0, 0];
  for (;;) {
    const [mine, yours] = [left[l], right[r]];
    if (mine === undefined && yours === undefined) return parts;
    if (mine !== undefined && (yours === undefined || mine.oldStart + mine.removed < yours.oldStart)) {
      const offset = yours === undefined ? theirsAhead : yours.newStart - yours.oldStart;
      append(parts, {
        from: "ours",
        base: { start: mine.oldStart, count: mine.removed },
        ours: { start: mine.newStart, count: mine.added },
        theirs: { start: mine.oldStart + offset, count: mine.removed },
      });
      l += 1;
    } else if (yours !== undefined && (mine === undefined || yours.oldStart + yours.removed < mine.oldStart)) {
      const offset = mine === undefined ? oursAhead : mine.newStart - mine.oldStart;
      append(parts, {
        from: "theirs",
        base: { start: yours.oldStart, count: yours.removed },
        ours: { start: yours.oldStart + offset, count: yours.removed },
        theirs: { start: yours.newStart, count: yours.added },
      });
      r += 1;
    } else if (mine !== undefined && yours !== undefined) {
      if (!isSameEdit(texts, mine, yours)) append(parts, meeting(mine, yours));
      const [mineEnds, yoursEnds] = [mine.oldStart + mine.removed, yours.oldStart + yours.removed];
      if (mineEnds >= yoursEnds) r += 1;
      if (yoursEnds >= mineEnds) l += 1;
    }
  }
}

function isSameEdit({ ours, theirs }: Texts, mine: Edit, yours: Edit): boolean {
  if (mine.oldStart !== yours.oldStart || mine.removed !== yours.removed || mine.added !== yours.added) return false;
  for (let i = 0; i < mine.added; i++) {
    if (ours[mine.newStart + i] !== theirs[yours.newStart + i]) return false;
  }
  return true;
}

/** Two edits that touch or overlap: from where the first begins to where the last ends. */
function meeting(mine: Edit, yours: Edit): Part {
  const start = Math.min(mine.oldStart, yours.oldStart);
  const end = Math.max(mine.oldStart + mine.removed, yours.oldStart + yours.removed);
  const reach = ({ oldStart, removed, newStart, added }: Edit): LineRange => ({
    start: newStart - (oldStart - start),
    count: added + (oldStart - start) + (end - oldStart - removed),
  });
  return { from: "both", base: { start, count: end - start }, ours: reach(mine), theirs: reach(yours) };
}

/** A part that touches the one before is one with it. */
function append(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  const touches =
    last !== undefined &&
    (part.ours.start <= last.ours.start + last.ours.count ||
      part.theirs.start <= last.theirs.start + last.theirs.count);
  if (!touches) parts.push(part);
  else parts[parts.length - 1] = { ...spanning(last, part), from: last.from === part.from ? last.from : "both" };
}

function spanning(first: Part, last: Part): Part {
  const span = (side: "base" | "ours" | "theirs"): LineRange => ({
    start: first[side].start,
    count: last[side].start + last[side].count - first[side].start,
  });
  return { ...first, base: span("base"), ours: span("ours"), theirs: span("theirs") };
}

/** Only what differs between the sides is a conflict: lines that both brought are taken out of it. */
function refined(parts: readonly Part[], texts: Texts, diff: LineDiff): Part[] {
  return parts.flatMap((part) => {
    const { from, ours, theirs } = part;
    if (from !== "both" || ours.count === 0 || theirs.count === 0) return [part];
    const edits = diff(linesAt(texts.ours, ours), linesAt(texts.theirs, theirs));
    if (edits.length === 0) return [{ ...part, from: "ours" as const }]; // both brought the same, if not at the same lines
    return edits.map((edit) => ({
      ...part,
      ours: { start: ours.start + edit.oldStart, count: edit.removed },
      theirs: { start: theirs.start + edit.newStart, count: edit.added },
    }));
  });
}

/** Fewer equal lines than this between two conflicts are easier to read as part of one. */
const LINES_APART = 3;

function joined(parts: readonly Part[], { ours }: Texts, acrossBlanks: boolean): Part[] {
  const result: Part[] = [];
  for (const part of parts) {
    const last = result.at(-1);
    if (last?.from === "both" && part.from === "both") {
      const start = last.ours.start + last.ours.count;
      const between = ours.slice(start, part.ours.start);
      if (between.length <= LINES_APART || (acrossBlanks && !between.some((line) => /[a-z0-9]/i.test(line)))) {
        result[result.length - 1] = spanning(last, part);
        continue;
      }
    }
    result.push(part);
  }
  return result;
}

function linesAt(lines: readonly string[], { start, count }: LineRange): string[] {
  return lines.slice(start, start + count);
}

const MARKER_LENGTH = 7;

class Writer {
  readonly #texts: Texts;
  readonly #favour: Favour | undefined;
  readonly #labels: { readonly ours: string; readonly theirs: string };
  readonly #pieces: string[] = [];

  constructor(texts: Texts, { favour, labels = { ours: "ours", theirs: "theirs" } }: TextMergeOptions) {
    this.#texts = texts;
    this.#favour = favour;
    this.#labels = labels;
  }

  write(parts: readonly Part[]): string {
    const { ours, theirs } = this.#texts;
    let at = 0;
    for (const part of parts) {
      this.#add(ours.slice(at, part.ours.start));
      at = part.ours.start + part.ours.count;
      const from = part.from === "both" ? (this.#favour ?? "both") : part.from;
      const [mine, yours] = [linesAt(ours, part.ours), linesAt(theirs, part.theirs)];
      if (from === "ours") this.#add(mine);
      else if (from === "theirs") this.#add(yours);
      else if (from === "union") this.#addUnion(mine, yours, this.#lineEnd(part));
      else this.#addConflict(mine, yours, this.#lineEnd(part));
    }
    this.#add(ours.slice(at));
    return this.#pieces.join("");
  }

  #add(lines: readonly string[]): void {
    for (const line of lines) this.#pieces.push(line);
  }

  #addUnion(mine: readonly string[], yours: readonly string[], end: string): void {
    this.#addEnded(mine, end);
    this.#add(yours);
  }

  #addConflict(mine: readonly string[], yours: readonly string[], end: string): void {
    const marker = (sign: string, label: string): string =>
      `${sign.repeat(MARKER_LENGTH)}${label && ` ${label}`}${end}`;
    this.#pieces.push(marker("<", this.#labels.ours));
    this.#addEnded(mine, end);
    this.#pieces.push(marker("=", ""));
    this.#addEnded(yours, end);
    this.#pieces.push(marker(">", this.#labels.theirs));
  }

  /** What follows begins a line. */
  #addEnded(lines: readonly string[], end: string): void {
    this.#add(lines);
    if (lines.length > 0 && !lines.at(-1)!.endsWith("\n")) this.#pieces.push(end);
  }

  /** As the lines before the conflict, or the first ones, end on both sides and in the base. */
  #lineEnd({ ours, theirs }: Part): string {
    const mine = hasCarriageReturn(this.#texts.ours, Math.max(0, ours.start - 1));
    const yours = hasCarriageReturn(this.#texts.theirs, Math.max(0, theirs.start - 1));
    const base = hasCarriageReturn(this.#texts.base, 0);
    return mine !== false && yours !== false && base === true ? "\r\n" : "\n";
  }
}

/** Undefined where it cannot be told. */
function hasCarriageReturn(lines: readonly string[], at: number): boolean | undefined {
  const line = lines[at];
  if (line === undefined) return undefined;
  if (line.endsWith("\n")) return line.endsWith("\r\n");
  return at === 0 ? undefined : lines[at - 1]!.endsWith("\r\n");
}
