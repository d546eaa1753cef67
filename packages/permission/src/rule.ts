/** How a pattern is read; see `resolveType` for what an absent type means. */
export type RuleType = "file" | "directory" | "glob";

/**
 * One line of a rule set.
 *
 * | field    | absent means                                            |
 * | -------- | ------------------------------------------------------- |
 * | type     | inferred from the pattern; `"glob"` is inferred as well |
 * | priority | 0                                                       |
 */
export interface Rule {
  readonly pattern: string;
  readonly permission: Level;
  readonly type?: RuleType;
  readonly priority?: number;
}

/** What one rule set may hold; each bound is there so that a hostile client cannot buy memory or time with rules. */
export const LIMITS = {
  /** Rules in one set. */
  rules: 10_000,
  /** UTF-16 units in one pattern. */
  patternLength: 4096,
  /** Patterns that the braces of one pattern, and `**` glued to other text, may stand for. */
  alternatives: 256,
  /** Characters of all patterns together, braces and glued `**` expanded. */
  text: 1_048_576,
  /** Path segments of all patterns together, likewise. */
  segments: 100_000,
} as const;

/** A rule that is refused. `index` is -1 when the rule set as a whole is what is wrong. */
export class RuleError extends Error {
  readonly index: number;
  readonly pattern: string;
  readonly reason: string;

  constructor(index: number, pattern: string, reason: string) {
    super(index < 0 ? `rules: ${reason}` : `rule ${index} (${JSON.stringify(clip(pattern))}): ${reason}`);
    this.name = "RuleError";
    this.index = index;
    this.pattern = pattern.length > LIMITS.patternLength ? clip(pattern) : pattern;
    this.reason = reason;
  }
}

/** Error texts end in logs and in front of people: a megabyte of pattern helps neither. */
function clip(pattern: string): string {
  return pattern.length > 200 ? `${pattern.slice(0, 200)}…` : pattern;
}

/** What a path may be used for, weakest first: absent, listed, readable, changeable. */
export type Level = "none" | "view" | "read" | "write";

/** The same four levels as numbers, so that "at least read" is a comparison. */
export type LevelValue = 0 | 1 | 2 | 3;

export const LEVEL = { none: 0, view: 1, read: 2, write: 3 } as const satisfies Record<Level, LevelValue>;

const NAMES = ["none", "view", "read", "write"] as const;

/** The word for a numeric level, as rules spell it. */
export function levelName(value: LevelValue): Level {
  return NAMES[value];
}

export function isLevel(value: unknown): value is Level {
  return typeof value === "string" && (NAMES as readonly string[]).includes(value);
}
