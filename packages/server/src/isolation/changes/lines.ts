// Which lines of two texts belong together, with the results of git: of `git diff` (Myers' algorithm) and of `git merge` (the
// histogram algorithm, which leans on lines that are rare). Whoever merges by other pairs of lines finds conflicts where git
// has none, and the other way round.

/** `removed` lines of the old text from `oldStart` gave way to `added` lines of the new one from `newStart`. */
export interface Edit {
  readonly oldStart: number;
  readonly removed: number;
  readonly newStart: number;
  readonly added: number;
}

export type LineDiff = (old: readonly string[], now: readonly string[]) => Edit[];

/** Lines with their line feeds: one that lacks it at the end of the file is another line. */
export function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** By Myers' algorithm. */
export const diffLines: LineDiff = (old, now) => compare(old, now, markByMyers);

/** By the histogram algorithm. */
export const histogramDiff: LineDiff = (old, now) => compare(old, now, markByHistogram);

/** A text as numbers, equal ones for equal lines, and which of them have no partner. */
interface Side {
  readonly lines: Int32Array;
  /** One longer than the text; what is beyond either end is unchanged. */
  readonly changed: Uint8Array;
}

/** Lines of the old text from `a0` up to `a1`, and of the new one from `b0` up to `b1`. */
interface Stretch {
  readonly a0: number;
  readonly a1: number;
  readonly b0: number;
  readonly b1: number;
}

/** Steps that are left for two texts. Where none are, a stretch counts as replaced: right still, only longer than it need be. */
interface Budget {
  steps: number;
}

/** A second or less; texts that people and programs write take far fewer. */
const STEPS = 100_000_000;

type Marking = (a: Side, b: Side, stretch: Stretch, budget: Budget) => void;

function compare(old: readonly string[], now: readonly string[], mark: Marking): Edit[] {
  const [a, b] = numbered(old, now);
  mark(a, b, { a0: 0, a1: old.length, b0: 0, b1: now.length }, { steps: STEPS });
  alignGroups(a, b);
  alignGroups(b, a);
  return editsOf(a, b);
}

function numbered(old: readonly string[], now: readonly string[]): [Side, Side] {
  const numbers = new Map<string, number>();
  const numberOf = (line: string): number => {
    const known = numbers.get(line) ?? numbers.size;
    numbers.set(line, known);
    return known;
  };
  const sideOf = (lines: readonly string[]): Side => ({
    lines: Int32Array.from(lines, numberOf),
    changed: new Uint8Array(lines.length + 1),
  });
  return [sideOf(old), sideOf(now)];
}

function editsOf(a: Side, b: Side): Edit[] {
  const edits: Edit[] = [];
  for (let i = 0, j = 0; i < a.lines.length || j < b.lines.length; i++, j++) {
    const [oldStart, newStart] = [i, j];
    while (a.changed[i]) i += 1;
    while (b.changed[j]) j += 1;
    const [removed, added] = [i - oldStart, j - newStart];
    if (removed > 0 || added > 0) edits.push({ oldStart, removed, newStart, added });
  }
  return edits;
}

/*
 * Myers ("An O(ND) Difference Algorithm and Its Variations", 1986, section 4b): the middle of a shortest edit path is found
 * from both ends at once, and both halves are solved alike. Lines that can have no partner are left out before, with those
 * between them that have too many; where the path gets long, the best so far will do.
 */
function markByMyers(a: Side, b: Side, stretch: Stretch, budget: Budget): void {
  const [inA, inB] = withPartners(a, b, stretch);
  const [x, y] = [inA.map((at) => a.lines[at]!), inB.map((at) => b.lines[at]!)];
  const search = new MiddleSearch(x, y, budget);
  const open: (Stretch & { readonly exact: boolean })[] = [{ a0: 0, a1: x.length, b0: 0, b1: y.length, exact: false }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    let { a0, a1, b0, b1 } = next;
    while (a0 < a1 && b0 < b1 && x[a0] === y[b0]) {
      a0 += 1;
      b0 += 1;
    }
    while (a0 < a1 && b0 < b1 && x[a1 - 1] === y[b1 - 1]) {
      a1 -= 1;
      b1 -= 1;
    }
    if (a0 === a1 || b0 === b1 || budget.steps <= 0) {
      for (let i = a0; i < a1; i++) a.changed[inA[i]!] = 1;
      for (let j = b0; j < b1; j++) b.changed[inB[j]!] = 1;
      continue;
    }
    const middle = search.find({ a0, a1, b0, b1 }, next.exact);
    open.push({ a0: middle.x, a1, b0: middle.y, b1, exact: middle.exactAfter });
    open.push({ a0, a1: middle.x, b0, b1: middle.y, exact: middle.exactBefore });
  }
}

const NO_PARTNER = 0;
const FEW_PARTNERS = 1;
const MANY_PARTNERS = 2;

/** Where the lines are that are worth comparing, between what both texts begin and end with. The others are marked. */
function withPartners(a: Side, b: Side, { a0, a1, b0, b1 }: Stretch): [Int32Array, Int32Array] {
  const shorter = Math.min(a1 - a0, b1 - b0);
  let start = 0;
  while (start < shorter && a.lines[a0 + start] === b.lines[b0 + start]) start += 1;
  let end = 0;
  while (end < shorter - start && a.lines[a1 - 1 - end] === b.lines[b1 - 1 - end]) end += 1;
  const [counts, partnerCounts] = [countsIn(a.lines, a0, a1), countsIn(b.lines, b0, b1)];
  return [
    keepWithPartners(a, { from: a0 + start, to: a1 - end, length: a1 - a0 }, partnerCounts),
    keepWithPartners(b, { from: b0 + start, to: b1 - end, length: b1 - b0 }, counts),
  ];
}

function countsIn(lines: Int32Array, from: number, to: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (let i = from; i < to; i++) counts.set(lines[i]!, (counts.get(lines[i]!) ?? 0) + 1);
  return counts;
}

const MOST_COUNTED_AS_FEW = 1024;

function keepWithPartners(
  { lines, changed }: Side,
  { from, to, length }: { readonly from: number; readonly to: number; readonly length: number },
  partners: ReadonlyMap<number, number>,
): Int32Array {
  const many = Math.min(roughRoot(length), MOST_COUNTED_AS_FEW);
  const kinds = Uint8Array.from(lines.subarray(from, to), (line) => {
    const count = partners.get(line) ?? 0;
    return count === 0 ? NO_PARTNER : count >= many ? MANY_PARTNERS : FEW_PARTNERS;
  });
  const kept: number[] = [];
  for (const [at, kind] of kinds.entries()) {
    if (kind === FEW_PARTNERS || (kind === MANY_PARTNERS && !isAmongPartnerless(kinds, at))) kept.push(from + at);
    else changed[from + at] = 1;
  }
  return Int32Array.from(kept);
}

/** As far as one looks for partnerless lines around one that has many partners. */
const WINDOW = 100;
/** So many times the others. */
const PREDOMINANCE = 4;

function isAmongPartnerless(kinds: Uint8Array, at: number): boolean {
  const look = (step: 1 | -1): { none: number; many: number } => {
    const found = { none: 0, many: 1 };
    for (let i = at + step, steps = 0; i >= 0 && i < kinds.length && steps < WINDOW; i += step, steps++) {
      if (kinds[i] === FEW_PARTNERS) break;
      if (kinds[i] === NO_PARTNER) found.none += 1;
      else found.many += 1;
    }
    return found;
  };
  const before = look(-1);
  if (before.none === 0) return false;
  const after = look(1);
  if (after.none === 0) return false;
  const many = before.many + after.many;
  return many * PREDOMINANCE < many + before.none + after.none;
}

/** The power of two next to the root: of 1 to 3 it is 2, of 4 to 15 it is 4. */
function roughRoot(n: number): number {
  let root = 1;
  for (let left = n; left > 0; left >>= 2) root <<= 1;
  return root;
}

/** A point of the edit path, and whether the parts before and behind it deserve a shortest path whatever it costs. */
interface Middle {
  readonly x: number;
  readonly y: number;
  readonly exactBefore: boolean;
  readonly exactAfter: boolean;
}

/** So many equal lines in a row are a good sign. */
const GOOD_RUN = 20;
/** From this cost on a good sign is enough. */
const COST_OF_HASTE = 256;
/** How much further than its cost a path must have got to be one. */
const GOOD_REACH = 4;
const LEAST_COST_LIMIT = 256;
const BEYOND = 2 ** 30;

/** `forward[k]` is how far down the old text a path from the start gets on diagonal k (old minus new position); `backward[k]` the same from the end. */
class MiddleSearch {
  readonly #x: Int32Array;
  readonly #y: Int32Array;
  readonly #forward: Int32Array;
  readonly #backward: Int32Array;
  /** Where diagonal 0 is in both. */
  readonly #origin: number;
  readonly #costLimit: number;
  readonly #budget: Budget;

  constructor(x: Int32Array, y: Int32Array, budget: Budget) {
    const diagonals = x.length + y.length + 3;
    this.#x = x;
    this.#y = y;
    this.#forward = new Int32Array(diagonals);
    this.#backward = new Int32Array(diagonals);
    this.#origin = y.length + 1;
    this.#costLimit = Math.max(roughRoot(diagonals), LEAST_COST_LIMIT);
    this.#budget = budget;
  }

  find(stretch: Stretch, exact: boolean): Middle {
    const { a0, a1, b0, b1 } = stretch;
    const [x, y, origin] = [this.#x, this.#y, this.#origin];
    const [forward, backward] = [this.#forward, this.#backward];
    const [lowest, highest] = [a0 - b1, a1 - b0];
    const [start, end] = [a0 - b0, a1 - b1];
    const meetsForward = (start - end) % 2 !== 0;
    const from = { low: start, high: start };
    const back = { low: end, high: end };
    forward[origin + start] = a0;
    backward[origin + end] = a1;
    for (let cost = 1; ; cost++) {
      let goodRun = false;
      // A diagonal more on either side, or one less where the stretch ends.
      if (from.low > lowest) forward[origin + --from.low - 1] = -1;
      else from.low += 1;
      if (from.high < highest) forward[origin + ++from.high + 1] = -1;
      else from.high -= 1;
      for (let k = from.high; k >= from.low; k -= 2) {
        const [left, right] = [forward[origin + k - 1]!, forward[origin + k + 1]!];
        const begin = left >= right ? left + 1 : right;
        let i = begin;
        while (i < a1 && i - k < b1 && x[i] === y[i - k]) i += 1;
        if (i - begin > GOOD_RUN) goodRun = true;
        this.#budget.steps -= 1 + i - begin;
        forward[origin + k] = i;
        if (meetsForward && back.low <= k && k <= back.high && backward[origin + k]! <= i) return middleAt(i, i - k);
      }
      if (back.low > lowest) backward[origin + --back.low - 1] = BEYOND;
      else back.low += 1;
      if (back.high < highest) backward[origin + ++back.high + 1] = BEYOND;
      else back.high -= 1;
      for (let k = back.high; k >= back.low; k -= 2) {
        const [left, right] = [backward[origin + k - 1]!, backward[origin + k + 1]!];
        const begin = left < right ? left : right - 1;
        let i = begin;
        while (i > a0 && i - k > b0 && x[i - 1] === y[i - k - 1]) i -= 1;
        if (begin - i > GOOD_RUN) goodRun = true;
        this.#budget.steps -= 1 + begin - i;
        backward[origin + k] = i;
        if (!meetsForward && from.low <= k && k <= from.high && i <= forward[origin + k]!) return middleAt(i, i - k);
      }
      if (exact && this.#budget.steps > 0) continue;
      if (goodRun && cost > COST_OF_HASTE) {
        const middle = this.#goodStart(stretch, from, start, cost) ?? this.#goodEnd(stretch, back, end, cost);
        if (middle !== undefined) return middle;
      }
      if (cost >= this.#costLimit || this.#budget.steps <= 0) return this.#furthest(stretch, from, back);
    }
  }

  /** The point that a path from the start reached with little cost and after many equal lines. */
  #goodStart({ a0, a1, b0, b1 }: Stretch, { low, high }: Diagonals, start: number, cost: number): Middle | undefined {
    let best = 0;
    let found: Middle | undefined;
    for (let k = high; k >= low; k -= 2) {
      const i = this.#forward[this.#origin + k]!;
      const j = i - k;
      const reach = i - a0 + (j - b0) - Math.abs(k - start);
      if (reach <= GOOD_REACH * cost || reach <= best) continue;
      if (i < a0 + GOOD_RUN || i >= a1 || j < b0 + GOOD_RUN || j >= b1) continue;
      if (!this.#isRun(i - GOOD_RUN, j - GOOD_RUN)) continue;
      best = reach;
      found = { x: i, y: j, exactBefore: true, exactAfter: false };
    }
    return found;
  }

  /** The same from the end. */
  #goodEnd({ a0, a1, b0, b1 }: Stretch, { low, high }: Diagonals, end: number, cost: number): Middle | undefined {
    let best = 0;
    let found: Middle | undefined;
    for (let k = high; k >= low; k -= 2) {
      const i = this.#backward[this.#origin + k]!;
      const j = i - k;
      const reach = a1 - i + (b1 - j) - Math.abs(k - end);
      if (reach <= GOOD_REACH * cost || reach <= best) continue;
      if (i <= a0 || i > a1 - GOOD_RUN || j <= b0 || j > b1 - GOOD_RUN) continue;
      if (!this.#isRun(i, j)) continue;
      best = reach;
      found = { x: i, y: j, exactBefore: false, exactAfter: true };
    }
    return found;
  }

  #isRun(i: number, j: number): boolean {
    for (let n = 0; n < GOOD_RUN; n++) if (this.#x[i + n] !== this.#y[j + n]) return false;
    return true;
  }

  /** Enough is enough: the end of the path that got furthest, from whichever side. */
  #furthest({ a0, a1, b0, b1 }: Stretch, from: Diagonals, back: Diagonals): Middle {
    let [forwardSum, forwardAt] = [-1, -1];
    for (let k = from.high; k >= from.low; k -= 2) {
      const i = Math.min(this.#forward[this.#origin + k]!, a1, b1 + k);
      if (i + (i - k) > forwardSum) [forwardSum, forwardAt] = [i + (i - k), i];
    }
    let [backwardSum, backwardAt] = [BEYOND, BEYOND];
    for (let k = back.high; k >= back.low; k -= 2) {
      const i = Math.max(this.#backward[this.#origin + k]!, a0, b0 + k);
      if (i + (i - k) < backwardSum) [backwardSum, backwardAt] = [i + (i - k), i];
    }
    if (a1 + b1 - backwardSum < forwardSum - (a0 + b0)) {
      return { x: forwardAt, y: forwardSum - forwardAt, exactBefore: true, exactAfter: false };
    }
    return { x: backwardAt, y: backwardSum - backwardAt, exactBefore: false, exactAfter: true };
  }
}

interface Diagonals {
  readonly low: number;
  readonly high: number;
}

function middleAt(x: number, y: number): Middle {
  return { x, y, exactBefore: true, exactAfter: true };
}

/*
 * The histogram algorithm (JGit's, after the patience diff): the longest run of equal lines around the line that is rarest in
 * the old text belongs together, and what is before and behind it is solved alike. Where every common line is frequent,
 * Myers decides.
 */
function markByHistogram(a: Side, b: Side, whole: Stretch, budget: Budget): void {
  const places = new Places(a.lines, b.lines);
  const open = [whole];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { a0, a1, b0, b1 } = next;
    const run =
      a0 === a1 || b0 === b1 || budget.steps <= 0 ? undefined : rarestRun(a.lines, b.lines, places, next, budget);
    if (run === "frequent") markByMyers(a, b, next, budget);
    else if (run === undefined) {
      a.changed.fill(1, a0, a1);
      b.changed.fill(1, b0, b1);
    } else {
      open.push({ a0, a1: run.a0, b0, b1: run.b0 }, { a0: run.a1, a1, b0: run.b1, b1 });
    }
  }
}

/** A line that is in the old text more often than this pairs nothing. */
const RARE = 64;

/** Undefined where the texts have no line in common. */
function rarestRun(
  a: Int32Array,
  b: Int32Array,
  places: Places,
  { a0, a1, b0, b1 }: Stretch,
  budget: Budget,
): Stretch | "frequent" | undefined {
  using _found = places.in(a0, a1);
  budget.steps -= a1 - a0 + (b1 - b0);
  let found: Stretch | undefined;
  let rarest = RARE + 1;
  let isCommon = false;
  for (let at = b0, after = at + 1; at < b1; at = after, after = at + 1) {
    const inOld = places.count(b[at]!);
    if (inOld === 0) continue;
    isCommon = true;
    if (inOld > rarest) continue;
    for (let place = places.first(b[at]!); place >= 0; ) {
      let [i, j] = [place, at];
      let [iEnd, jEnd] = [place + 1, at + 1];
      let count = inOld;
      while (i > a0 && j > b0 && a[i - 1] === b[j - 1]) {
        i -= 1;
        j -= 1;
        if (count > 1) count = Math.min(count, places.count(a[i]!));
      }
      while (iEnd < a1 && jEnd < b1 && a[iEnd] === b[jEnd]) {
        if (count > 1) count = Math.min(count, places.count(a[iEnd]!));
        iEnd += 1;
        jEnd += 1;
      }
      budget.steps -= iEnd - i;
      after = Math.max(after, jEnd);
      if (found === undefined || found.a1 - found.a0 < iEnd - i || count < rarest) {
        found = { a0: i, a1: iEnd, b0: j, b1: jEnd };
        rarest = count;
      }
      while (place >= 0 && place < iEnd) place = places.next(place);
      if (budget.steps <= 0) return undefined;
    }
  }
  return isCommon && rarest > RARE ? "frequent" : found;
}

/** Where each line is in a stretch of the old text. Lines are small numbers, so tables serve that are used again for each stretch. */
class Places {
  readonly #lines: Int32Array;
  /** By line; one more than the place, 0 for none. */
  readonly #first: Int32Array;
  readonly #counts: Int32Array;
  /** By place: the next of the same line. */
  readonly #next: Int32Array;

  constructor(lines: Int32Array, others: Int32Array) {
    const different = Math.max(highest(lines), highest(others)) + 1;
    this.#lines = lines;
    this.#first = new Int32Array(different);
    this.#counts = new Int32Array(different);
    this.#next = new Int32Array(lines.length);
  }

  /** Knows the places in a stretch until it is disposed of. */
  in(from: number, to: number): Disposable {
    for (let i = to - 1; i >= from; i--) {
      const line = this.#lines[i]!;
      this.#next[i] = this.#first[line]! - 1;
      this.#first[line] = i + 1;
      this.#counts[line]! += 1;
    }
    return {
      [Symbol.dispose]: () => {
        for (let i = from; i < to; i++) {
          const line = this.#lines[i]!;
          this.#first[line] = 0;
          this.#counts[line] = 0;
        }
      },
    };
  }

  count(line: number): number {
    return this.#counts[line]!;
  }

  /** -1 for none. */
  first(line: number): number {
    return this.#first[line]! - 1;
  }

  next(place: number): number {
    return this.#next[place]!;
  }
}

function highest(numbers: Int32Array): number {
  return numbers.reduce((most, number) => (number > most ? number : most), -1);
}

/*
 * A group of changed lines can often be moved: in "a b a b" either pair may be the new one. Each goes down as far as it can,
 * or to the last place where the other text has a group beside it.
 */
function alignGroups(side: Side, other: Side): void {
  const group = new Group(side);
  const beside = new Group(other);
  do {
    if (!group.isEmpty) align(group, beside);
  } while (group.toNext() && beside.toNext());
}

function align(group: Group, beside: Group): void {
  let length: number;
  let highest: number;
  let lastBeside: number | undefined;
  do {
    length = group.end - group.start;
    lastBeside = undefined;
    while (group.slideUp()) beside.toPrevious();
    highest = group.end;
    if (!beside.isEmpty) lastBeside = group.end;
    while (group.slideDown()) {
      beside.toNext();
      if (!beside.isEmpty) lastBeside = group.end;
    }
    // It may have met others on its way, and be longer now.
  } while (length !== group.end - group.start);
  if (group.end === highest || lastBeside === undefined) return;
  while (beside.isEmpty && group.slideUp()) beside.toPrevious();
}

/** Changed lines in a row, between two unchanged ones; there may be none. */
class Group {
  start = 0;
  end = 0;
  readonly #side: Side;

  constructor(side: Side) {
    this.#side = side;
    this.#findEnd();
  }

  get isEmpty(): boolean {
    return this.start === this.end;
  }

  toNext(): boolean {
    if (this.end === this.#side.lines.length) return false;
    this.start = this.end + 1;
    this.end = this.start;
    this.#findEnd();
    return true;
  }

  toPrevious(): void {
    this.end = this.start - 1;
    this.start = this.end;
    this.#findStart();
  }

  /** False where the line above is not the group's last. */
  slideUp(): boolean {
    const { lines, changed } = this.#side;
    if (this.start === 0 || lines[this.start - 1] !== lines[this.end - 1]) return false;
    changed[--this.start] = 1;
    changed[--this.end] = 0;
    this.#findStart();
    return true;
  }

  slideDown(): boolean {
    const { lines, changed } = this.#side;
    if (this.end === lines.length || lines[this.start] !== lines[this.end]) return false;
    changed[this.start++] = 0;
    changed[this.end++] = 1;
    this.#findEnd();
    return true;
  }

  #findStart(): void {
    while (this.#side.changed[this.start - 1]) this.start -= 1;
  }

  #findEnd(): void {
    while (this.#side.changed[this.end]) this.end += 1;
  }
}
