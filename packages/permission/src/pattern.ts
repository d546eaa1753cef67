import { LIMITS, type RuleType } from "./rule.ts";
import { literalLength, type Segment, type SegmentToken, STAR, segmentFrom, segmentKey } from "./segment.ts";
import { type ParsedPattern, PatternError, type Piece, parsePattern, type Sequence, SLASH } from "./tokens.ts";

/** One of the plain patterns that a pattern with braces stands for. */
export interface Alternative {
  /** From the root of the workspace; no two `globstar` in a row. */
  readonly segments: readonly Segment[];
  /** Code points of literal text, slashes not counted. */
  readonly specificity: number;
}

export interface Pattern {
  /** What the pattern is obeyed as: given, or inferred from its syntax. */
  readonly type: RuleType;
  readonly alternatives: readonly Alternative[];
  /** Characters of all alternatives together, about. */
  readonly textLength: number;
}

const GLOBSTAR: Segment = { kind: "globstar" };
const ANY: Segment = { kind: "any" };

/**
 * Reads a pattern, or throws a `PatternError` that says what is wrong with it.
 *
 * Type and anchoring are read off the pattern as it is written; then braces are expanded as in a shell, and every
 * alternative is one plain pattern with a specificity of its own.
 */
export function readPattern(text: string, explicitType: RuleType | undefined): Pattern {
  if (text === "") throw new PatternError("the pattern is empty");
  if (text.length > LIMITS.patternLength) {
    throw new PatternError(`the pattern is longer than ${LIMITS.patternLength} characters`);
  }
  if (text.includes("\0")) throw new PatternError("the pattern contains a NUL character, which no name contains");
  if (text.startsWith("!")) {
    throw new PatternError(
      "negation does not exist; write a rule with another level, or \\! for a name with that mark",
    );
  }
  const parsed = parsePattern(text);
  const type = resolveType(parsed, explicitType);
  if (type === "file" && parsed.endsInSlash && text !== "/") {
    throw new PatternError("a file pattern ends in a slash; leave it out, or use type directory");
  }
  if (countBranches(parsed.sequence) > LIMITS.alternatives) throw tooManyAlternatives();

  // A type that is given makes the pattern a path, and a path starts at the root.
  const anchored = parsed.hasSlash || explicitType === "file" || explicitType === "directory";
  const alternatives = new Map<string, Alternative>();
  let textLength = 0;
  for (const pieces of expandBraces(parsed.sequence)) {
    if (pieces.at(-1) === SLASH && !parsed.endsInSlash) {
      throw new PatternError("an alternative ends in a slash; put the slash behind the braces");
    }
    const parts = splitAtSlashes(pieces);
    checkParts(parts);
    for (const segments of separateGlobstars(parts)) {
      const place = normalize(anchored ? segments : [GLOBSTAR, ...segments]);
      const normal = type === "directory" ? normalize([...place, GLOBSTAR]) : place;
      const key = normal.map(segmentKey).join("/");
      if (alternatives.has(key)) continue;
      const specificity = normal.reduce((sum, segment) => sum + literalLength(segment), 0);
      alternatives.set(key, { segments: normal, specificity });
      textLength += key.length;
      if (alternatives.size > LIMITS.alternatives) throw tooManyAlternatives();
    }
  }
  return { type, alternatives: [...alternatives.values()], textLength };
}

/**
 * | given            | pattern                   | type      |
 * | ---------------- | ------------------------- | --------- |
 * | file, directory  | no wildcard               | as given  |
 * | file, directory  | has a wildcard            | refused   |
 * | absent, glob     | ends in `/`               | directory |
 * | absent, glob     | no wildcard and has a `/` | file      |
 * | absent, glob     | anything else             | glob      |
 */
function resolveType(parsed: ParsedPattern, given: RuleType | undefined): RuleType {
  if (given === "file" || given === "directory") {
    if (parsed.hasWildcard) {
      throw new PatternError(
        `type ${given} takes a literal path, and the pattern has a wildcard; leave the type out, or escape it with \\`,
      );
    }
    return given;
  }
  if (parsed.endsInSlash) return "directory";
  return parsed.hasSlash && !parsed.hasWildcard ? "file" : "glob";
}

/** How many patterns the braces stand for, found without making them. */
function countBranches(sequence: Sequence): number {
  let count = 1;
  for (const piece of sequence) {
    if (isAlternation(piece)) count *= piece.branches.reduce((sum, branch) => sum + countBranches(branch), 0);
  }
  return count;
}

function expandBraces(sequence: Sequence): Piece[][] {
  let expanded: Piece[][] = [[]];
  for (const piece of sequence) {
    if (isAlternation(piece)) {
      const endings = piece.branches.flatMap(expandBraces);
      expanded = expanded.flatMap((start) => endings.map((ending) => [...start, ...ending]));
    } else {
      for (const pieces of expanded) pieces.push(piece);
    }
  }
  return expanded;
}

/** The parts between slashes; the slash at the start or at the end of a pattern separates nothing. */
function splitAtSlashes(pieces: readonly Piece[]): SegmentToken[][] {
  const parts: SegmentToken[][] = [[]];
  for (const piece of pieces) {
    if (piece === SLASH) parts.push([]);
    else parts[parts.length - 1]!.push(piece);
  }
  if (pieces[0] === SLASH) parts.shift();
  if (pieces.at(-1) === SLASH && parts.at(-1)?.length === 0) parts.pop();
  return parts;
}

function checkParts(parts: readonly SegmentToken[][]): void {
  for (const part of parts) {
    if (part.length === 0) throw new PatternError("the pattern has an empty segment");
    if (part.length <= 2 && part.every((token) => token === 0x2e)) {
      throw new PatternError("the pattern has a . or .. segment, which no path contains");
    }
  }
}

/**
 * `**` that fills its segment spans any number of segments. Glued to other text it spans too: `a**b` is `a*b` in one
 * segment or `a*`, anything, `*b` in several. So a segment with n of them stands for 2ⁿ sequences of segments.
 */
function separateGlobstars(parts: readonly SegmentToken[][]): Segment[][] {
  let sequences: Segment[][] = [[]];
  for (const part of parts) {
    const endings = isGlobstar(part) ? [[GLOBSTAR]] : gluedReadings(part);
    if (sequences.length * endings.length > LIMITS.alternatives) throw tooManyAlternatives();
    if (endings.length === 1) for (const sequence of sequences) sequence.push(...endings[0]!);
    else sequences = sequences.flatMap((start) => endings.map((ending) => [...start, ...ending]));
  }
  return sequences;
}

function gluedReadings(part: readonly SegmentToken[]): Segment[][] {
  const pieces = splitAtDoubleStars(part);
  if (2 ** (pieces.length - 1) > LIMITS.alternatives) throw tooManyAlternatives();
  let readings: { readonly done: Segment[]; readonly open: SegmentToken[] }[] = [{ done: [], open: pieces[0]! }];
  for (const piece of pieces.slice(1)) {
    readings = readings.flatMap(({ done, open }) => [
      { done, open: [...open, STAR, ...piece] },
      { done: [...done, segmentFrom([...open, STAR]), GLOBSTAR], open: [STAR, ...piece] },
    ]);
  }
  return readings.map(({ done, open }) => [...done, segmentFrom(open)]);
}

function splitAtDoubleStars(part: readonly SegmentToken[]): SegmentToken[][] {
  const pieces: SegmentToken[][] = [[]];
  for (let i = 0; i < part.length; i++) {
    if (part[i] === STAR && part[i + 1] === STAR) {
      while (part[i + 1] === STAR) i++;
      pieces.push([]);
    } else {
      pieces[pieces.length - 1]!.push(part[i]!);
    }
  }
  return pieces;
}

/**
 * Equal meanings get equal segments. A run of `*` and `**` means "at least so many segments" in whatever order, and is
 * written with its `**` first. A pattern made of `**` alone, or of `**` and one final `*`, means everything, and that
 * includes the root of the workspace, which has no name that a `*` could match.
 */
function normalize(segments: readonly Segment[]): Segment[] {
  const withoutLastStar = segments.at(-1)?.kind === "any" ? segments.slice(0, -1) : segments;
  if (withoutLastStar.length > 0 && withoutLastStar.every((segment) => segment.kind === "globstar")) return [GLOBSTAR];

  const normal: Segment[] = [];
  let stars = 0;
  let spans = false;
  const endRun = () => {
    if (spans) normal.push(GLOBSTAR);
    for (; stars > 0; stars--) normal.push(ANY);
    spans = false;
  };
  for (const segment of segments) {
    if (segment.kind === "globstar") {
      spans = true;
    } else if (segment.kind === "any") {
      stars++;
    } else {
      endRun();
      normal.push(segment);
    }
  }
  endRun();
  return normal;
}

function isGlobstar(part: readonly SegmentToken[]): boolean {
  return part.length >= 2 && part.every((token) => token === STAR);
}

function isAlternation(piece: Sequence[number]): piece is Exclude<Sequence[number], Piece> {
  return typeof piece === "object" && "branches" in piece;
}

function tooManyAlternatives(): PatternError {
  return new PatternError(`the pattern stands for more than ${LIMITS.alternatives} patterns`);
}
