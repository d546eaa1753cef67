import { type Alternative, readPattern } from "./pattern.ts";
import { isLevel, LEVEL, type LevelValue, LIMITS, type Rule, RuleError, type RuleType } from "./rule.ts";
import { PatternError } from "./tokens.ts";

/** A rule that was found to be well formed, with everything that was left out filled in. */
export interface ResolvedRule {
  readonly index: number;
  readonly rule: Rule;
  readonly type: RuleType;
  readonly priority: number;
  readonly level: LevelValue;
  readonly alternatives: readonly Alternative[];
  /** Characters of the pattern, braces expanded. */
  readonly textLength: number;
}

export interface ResolvedRules {
  readonly rules: readonly ResolvedRule[];
  /** Rules that a later one with the same pattern, type and priority replaces: index to index of the last such rule. */
  readonly replacedBy: ReadonlyMap<number, number>;
  /** The alternatives of every rule that is not replaced, strongest first. */
  readonly contenders: readonly Contender[];
}

/** One plain pattern in the contest for a path. Its place in the list of contenders is its order: lower wins. */
export interface Contender {
  readonly rule: ResolvedRule;
  readonly alternative: Alternative;
}

const TYPE_RANK = { file: 3, directory: 2, glob: 1 } as const satisfies Record<RuleType, number>;

/** Checks and ranks a rule set; the first rule that is wrong is refused with a `RuleError`. */
export function resolveRules(rules: readonly Rule[]): ResolvedRules {
  if (rules.length > LIMITS.rules) {
    throw new RuleError(-1, "", `there are ${rules.length} rules, and at most ${LIMITS.rules} are allowed`);
  }
  const resolved: ResolvedRule[] = [];
  const lastWithKey = new Map<string, number>();
  let text = 0;
  let segments = 0;
  for (const [index, rule] of rules.entries()) {
    const one = resolveRule(rule, index);
    text += one.textLength;
    if (text > LIMITS.text) {
      throw new RuleError(index, rule.pattern, `the patterns up to here have more than ${LIMITS.text} characters`);
    }
    for (const alternative of one.alternatives) segments += alternative.segments.length;
    if (segments > LIMITS.segments) {
      throw new RuleError(index, rule.pattern, `the rules up to here have more than ${LIMITS.segments} path segments`);
    }
    resolved.push(one);
    lastWithKey.set(identity(one), index);
  }

  const replacedBy = new Map<number, number>();
  for (const one of resolved) {
    const last = lastWithKey.get(identity(one))!;
    if (last !== one.index) replacedBy.set(one.index, last);
  }
  const contenders = resolved
    .filter((rule) => !replacedBy.has(rule.index))
    .flatMap((rule) => rule.alternatives.map((alternative) => ({ rule, alternative })))
    .sort(byOrder);
  return { rules: resolved, replacedBy, contenders };
}

/** What decides between two contenders for the same path, or undefined when only strictness is left to decide. */
export function rankDifference(a: Contender, b: Contender): "priority" | "type" | "specificity" | undefined {
  if (a.rule.priority !== b.rule.priority) return "priority";
  if (a.rule.type !== b.rule.type) return "type";
  if (a.alternative.specificity !== b.alternative.specificity) return "specificity";
  return undefined;
}

function byOrder(a: Contender, b: Contender): number {
  return (
    // Subtracting two safe integers may leave the safe range, but not change sign.
    b.rule.priority - a.rule.priority ||
    TYPE_RANK[b.rule.type] - TYPE_RANK[a.rule.type] ||
    b.alternative.specificity - a.alternative.specificity ||
    // A tie: the stricter wins. The index only settles which of two equals is named.
    a.rule.level - b.rule.level ||
    a.rule.index - b.rule.index
  );
}

/** Two rules with the same identity are the same pattern twice at one priority. */
function identity(rule: ResolvedRule): string {
  return `${rule.priority} ${rule.type} ${rule.rule.pattern}`;
}

function resolveRule(rule: Rule, index: number): ResolvedRule {
  const { pattern, permission, type, priority = 0 } = rule;
  if (typeof pattern !== "string") throw new RuleError(index, "", "pattern must be a string");
  if (!isLevel(permission)) {
    throw new RuleError(index, pattern, "permission must be one of none, view, read, write");
  }
  if (type !== undefined && !Object.hasOwn(TYPE_RANK, type)) {
    throw new RuleError(index, pattern, "type must be one of file, directory, glob");
  }
  if (!Number.isSafeInteger(priority)) throw new RuleError(index, pattern, "priority must be a whole number");
  try {
    return { index, rule, priority, level: LEVEL[permission], ...readPattern(pattern, type) };
  } catch (error) {
    if (error instanceof PatternError) throw new RuleError(index, pattern, error.message);
    throw error;
  }
}
