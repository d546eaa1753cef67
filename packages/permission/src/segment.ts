/**
 * One segment of a pattern (what stands between two slashes) and how a name matches it.
 *
 * Names are compared by code points. A surrogate without its partner, which is how a byte that is not UTF-8 arrives,
 * is a code point of its own. No character is special in a name: not a dot, not a line feed, not a backslash.
 */

/** Exactly one code point out of (or, negated, outside of) some ranges. */
export interface CharacterClass {
  readonly negated: boolean;
  /** Inclusive bounds in pairs: `[a-z_]` is `[97, 122, 95, 95]`. */
  readonly bounds: readonly number[];
}

export const ANY_CHARACTER: unique symbol = Symbol("?");
export const STAR: unique symbol = Symbol("*");

/** A literal code point, `?`, or a class: each takes one code point of the name. */
type Item = number | typeof ANY_CHARACTER | CharacterClass;
export type SegmentToken = Item | typeof STAR;

export type Segment =
  | { readonly kind: "globstar" }
  | { readonly kind: "any" }
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "wild"; readonly wild: WildSegment };

/** A segment with wildcards. Segments with the same `key` match the same names. */
export interface WildSegment {
  readonly key: string;
  /** Literal text every matching name starts with; empty when it starts with a wildcard. */
  readonly prefix: string;
  /** Literal text every matching name ends with. */
  readonly suffix: string;
  /** The longest literal text in it, which every matching name contains. */
  readonly needle: string;
  /** Whether prefix and suffix say it all: the segment is `prefix*suffix`. */
  readonly plain: boolean;
  /** The runs of items between the stars; one run more than there are stars. */
  readonly runs: readonly (readonly Item[])[];
}

export function segmentFrom(tokens: readonly SegmentToken[]): Segment {
  const runs = splitAtStars(joinSurrogates(tokens));
  if (runs.length === 1 && runs[0]!.every(isLiteral)) {
    return { kind: "literal", text: String.fromCodePoint(...(runs[0] as number[])) };
  }
  if (runs.length === 2 && runs.every((run) => run.length === 0)) return { kind: "any" };
  return { kind: "wild", wild: wildSegment(runs) };
}

/** Literal code points in a segment: what makes one pattern more specific than another. */
export function literalLength(segment: Segment): number {
  switch (segment.kind) {
    case "literal":
      return [...segment.text].length;
    case "wild":
      return segment.wild.runs.reduce((sum, run) => sum + run.filter(isLiteral).length, 0);
    default:
      return 0;
  }
}

/** A text that is equal exactly for segments that match the same names in the same way. */
export function segmentKey(segment: Segment): string {
  switch (segment.kind) {
    case "globstar":
      return "**";
    case "any":
      return "*";
    case "literal":
      return `=${segment.text}`;
    case "wild":
      return segment.wild.key;
  }
}

export function segmentMatches(segment: Segment, name: string): boolean {
  switch (segment.kind) {
    case "literal":
      return segment.text === name;
    case "wild":
      return wildMatches(segment.wild, name);
    default:
      return true;
  }
}

/**
 * Whether a name matches a segment with wildcards.
 *
 * The outer runs are fixed to the ends of the name; each run between them is taken at the leftmost place it fits, which
 * is never worse than a later one, so nothing is ever tried twice: at most (name length × longest run) comparisons.
 */
export function wildMatches(wild: WildSegment, name: string): boolean {
  if (!name.includes(wild.needle)) return false;
  const { runs } = wild;
  const first = runs[0]!;
  let position = endOfRun(first, name, 0);
  if (position < 0) return false;
  if (runs.length === 1) return position === name.length;

  const last = runs[runs.length - 1]!;
  const limit = stepBack(name, last.length);
  if (limit < position || endOfRun(last, name, limit) !== name.length) return false;

  for (let i = 1; i < runs.length - 1; i++) {
    let end = endOfRun(runs[i]!, name, position);
    while (end < 0 || end > limit) {
      if (position >= limit) return false;
      position += widthAt(name, position);
      end = endOfRun(runs[i]!, name, position);
    }
    position = end;
  }
  return true;
}

/** Where a run that starts at `start` ends, or -1 when it does not fit there. */
function endOfRun(run: readonly Item[], name: string, start: number): number {
  let position = start;
  for (const item of run) {
    const codePoint = name.codePointAt(position);
    if (codePoint === undefined) return -1;
    if (typeof item === "number") {
      if (item !== codePoint) return -1;
    } else if (item !== ANY_CHARACTER && !inClass(item, codePoint)) {
      return -1;
    }
    position += codePoint > 0xffff ? 2 : 1;
  }
  return position;
}

function inClass(characterClass: CharacterClass, codePoint: number): boolean {
  const { bounds, negated } = characterClass;
  for (let i = 0; i < bounds.length; i += 2) {
    if (codePoint >= bounds[i]! && codePoint <= bounds[i + 1]!) return !negated;
  }
  return negated;
}

/** The position `count` code points before the end, or -1 when the name is shorter. */
function stepBack(name: string, count: number): number {
  let position = name.length;
  for (let i = 0; i < count; i++) {
    if (position === 0) return -1;
    position -= position > 1 && isLow(name.charCodeAt(position - 1)) && isHigh(name.charCodeAt(position - 2)) ? 2 : 1;
  }
  return position;
}

function widthAt(name: string, position: number): number {
  return name.codePointAt(position)! > 0xffff ? 2 : 1;
}

function wildSegment(runs: readonly (readonly Item[])[]): WildSegment {
  const first = runs[0]!;
  const last = runs[runs.length - 1]!;
  const headLength = first.findIndex((item) => !isLiteral(item));
  const head = (headLength < 0 ? first : first.slice(0, headLength)) as number[];
  const tail = last.slice(last.findLastIndex((item) => !isLiteral(item)) + 1) as number[];
  // Half a surrogate pair at the inner edge could cut a character of the name in two when units are compared.
  const prefix = isHigh(head.at(-1)) ? "" : String.fromCodePoint(...head);
  const suffix = isLow(tail[0]) ? "" : String.fromCodePoint(...tail);
  return {
    key: `~${runs.map((run) => run.map(itemKey).join("")).join("*")}`,
    prefix,
    suffix,
    needle: longestLiteral(runs),
    plain: runs.length === 2 && isText(first, prefix) && isText(last, suffix),
    runs,
  };
}

function itemKey(item: Item): string {
  if (item === ANY_CHARACTER) return "?";
  if (typeof item === "object") return `[${item.negated ? "!" : ""}${item.bounds.join(",")}]`;
  const text = String.fromCodePoint(item);
  return "\\*?[".includes(text) ? `\\${text}` : text;
}

function splitAtStars(tokens: readonly SegmentToken[]): Item[][] {
  const runs: Item[][] = [[]];
  let afterStar = false;
  for (const token of tokens) {
    if (token !== STAR) runs[runs.length - 1]!.push(token);
    else if (!afterStar) runs.push([]);
    afterStar = token === STAR;
  }
  return runs;
}

/** Two halves that brace expansion brought together are the one character they spell. */
function joinSurrogates(tokens: readonly SegmentToken[]): SegmentToken[] {
  const joined: SegmentToken[] = [];
  for (const token of tokens) {
    const before = joined.at(-1);
    if (typeof before === "number" && typeof token === "number" && isHigh(before) && isLow(token)) {
      joined[joined.length - 1] = (before - 0xd800) * 0x400 + (token - 0xdc00) + 0x10000;
    } else {
      joined.push(token);
    }
  }
  return joined;
}

function longestLiteral(runs: readonly (readonly Item[])[]): string {
  let longest = "";
  for (const run of runs) {
    let text = "";
    for (const item of run) {
      text = isLiteral(item) ? text + String.fromCodePoint(item) : "";
      if (text.length > longest.length) longest = text;
    }
  }
  return longest;
}

function isText(run: readonly Item[], text: string): boolean {
  return run.every(isLiteral) && String.fromCodePoint(...run) === text;
}

function isLiteral(item: Item): item is number {
  return typeof item === "number";
}

function isHigh(unit: number | undefined): boolean {
  return unit !== undefined && unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number | undefined): boolean {
  return unit !== undefined && unit >= 0xdc00 && unit <= 0xdfff;
}
