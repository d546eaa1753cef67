import { pathNames } from "./parse-rules.ts";
import type { Alternative } from "./pattern.ts";
import { type Contender, type ResolvedRule, type ResolvedRules, rankDifference } from "./resolve.ts";
import { type Level, levelName, type RuleType } from "./rule.ts";
import { segmentMatches } from "./segment.ts";

/** Why a path has the level it has. */
export interface Explanation {
  readonly path: string;
  readonly level: Level;
  /** Index of the deciding rule, -1 when nothing matched. */
  readonly rule: number;
  /** One sentence for people. */
  readonly reason: string;
  /** Every rule that counts for the path, in rank order: the deciding one, then those that lost. */
  readonly candidates: readonly Candidate[];
}

/** One rule that counts for the path. */
export interface Candidate {
  readonly rule: number;
  readonly pattern: string;
  readonly permission: Level;
  /** As given or inferred. */
  readonly type: RuleType;
  readonly priority: number;
  /** Code points of literal text in the pattern (with braces: in the alternative that matched). */
  readonly specificity: number;
  /** The directory above the path that a `none` rule matched; absent when the rule matches the path itself. */
  readonly ancestor?: string;
  /** What the rule lost by; absent for the one that decides. */
  readonly lostBy?: LostBy;
  /** One sentence for people. */
  readonly reason: string;
}

/**
 * | value       | the rule lost because                                                   |
 * | ----------- | ----------------------------------------------------------------------- |
 * | priority    | the deciding rule has a higher priority                                 |
 * | type        | file ranks above directory, directory above glob                        |
 * | specificity | the deciding rule has more literal text                                 |
 * | strictness  | it ties with the deciding rule, which is stricter                       |
 * | order       | it ties with the deciding rule and says the same; the first one is named |
 * | replaced    | a later rule has the same pattern, type and priority                    |
 */
export type LostBy = "priority" | "type" | "specificity" | "strictness" | "order" | "replaced";

interface Match extends Contender {
  readonly ancestor: string | undefined;
}

export function explainPath(resolved: ResolvedRules, path: string): Explanation {
  const names = pathNames(path);
  const orders = new Map<Alternative, number>();
  for (const [order, { alternative }] of resolved.contenders.entries()) orders.set(alternative, order);
  // A replaced rule has no order any more; it is listed at the end.
  const orderOf = (match: Match) => orders.get(match.alternative) ?? Number.MAX_SAFE_INTEGER;

  const matches: Match[] = [];
  const replaced: Match[] = [];
  for (const rule of resolved.rules) {
    const own = rule.alternatives
      .map((alternative) => matchOf(rule, alternative, names))
      .filter((match) => match !== undefined);
    // A rule competes with the strongest of its alternatives.
    const best = own.sort((a, b) => orderOf(a) - orderOf(b))[0];
    if (best !== undefined) (resolved.replacedBy.has(rule.index) ? replaced : matches).push(best);
  }
  matches.sort((a, b) => orderOf(a) - orderOf(b));

  const winner = matches[0];
  const candidates = [
    ...matches.map((match) => (match === winner ? decides(match) : loses(match, winner!))),
    ...replaced.map((match) => isReplaced(match, resolved.replacedBy.get(match.rule.index)!)),
  ];
  return {
    path,
    level: winner === undefined ? "none" : levelName(winner.rule.level),
    rule: winner?.rule.index ?? -1,
    reason: candidates[0]?.lostBy === undefined ? (candidates[0]?.reason ?? NOTHING) : NOTHING,
    candidates,
  };
}

const NOTHING = "hidden, because no rule matches";

function decides(match: Match): Candidate {
  const level = levelName(match.rule.level);
  const reason =
    match.ancestor !== undefined
      ? `hidden through ancestor ${match.ancestor} by rule ${match.rule.index}`
      : `rule ${match.rule.index} decides: ${level}`;
  return describe(match, { reason });
}

function loses(match: Match, winner: Match): Candidate {
  const [lostBy, why] = comparison(match, winner);
  const through = match.ancestor === undefined ? "" : `would hide it through ancestor ${match.ancestor}, but `;
  return describe(match, { lostBy, reason: through + why });
}

function comparison(match: Match, winner: Match): [LostBy, string] {
  const other = `rule ${winner.rule.index}`;
  const difference = rankDifference(match, winner);
  switch (difference) {
    case "priority":
      return [difference, `its priority ${match.rule.priority} is below ${winner.rule.priority} of ${other}`];
    case "type":
      return [difference, `its type ${match.rule.type} ranks below ${winner.rule.type} of ${other}`];
    case "specificity":
      return [
        difference,
        `it has less literal text (${match.alternative.specificity}) than ${other} (${winner.alternative.specificity})`,
      ];
    default:
      return match.rule.level === winner.rule.level
        ? ["order", `it ties with ${other}, which says the same and comes first`]
        : ["strictness", `it ties with ${other}, which is stricter`];
  }
}

function isReplaced(match: Match, by: number): Candidate {
  return describe(match, { lostBy: "replaced", reason: `rule ${by} is the same pattern later and replaces it` });
}

function describe(match: Match, outcome: { lostBy?: LostBy; reason: string }): Candidate {
  const { rule, alternative, ancestor } = match;
  return {
    rule: rule.index,
    pattern: rule.rule.pattern,
    permission: rule.rule.permission,
    type: rule.type,
    priority: rule.priority,
    specificity: alternative.specificity,
    ...(ancestor === undefined ? {} : { ancestor }),
    ...outcome,
  };
}

/** How an alternative counts for a path: by matching it, or, for `none`, by matching a directory above. */
function matchOf(rule: ResolvedRule, alternative: Alternative, names: readonly string[]): Match | undefined {
  const depths = matchingDepths(alternative, names);
  if (depths.includes(names.length)) return { rule, alternative, ancestor: undefined };
  if (rule.level > 0 || depths.length === 0) return undefined;
  return { rule, alternative, ancestor: `/${names.slice(0, depths[0]).join("/")}` };
}

/** How many names from the root lead to a path that the alternative matches; every such depth, ascending. */
function matchingDepths({ segments }: Alternative, names: readonly string[]): number[] {
  const depths: number[] = [];
  let positions = withSkippedGlobstars(new Set([0]));
  for (let depth = 0; positions.size > 0; depth++) {
    if (positions.has(segments.length)) depths.push(depth);
    const name = names[depth];
    if (name === undefined) break;
    const next = new Set<number>();
    for (const position of positions) {
      const segment = segments[position];
      if (segment === undefined || !segmentMatches(segment, name)) continue;
      next.add(segment.kind === "globstar" ? position : position + 1);
    }
    positions = withSkippedGlobstars(next);
  }
  return depths;

  /** `**` may stand for no segment. */
  function withSkippedGlobstars(from: Set<number>): Set<number> {
    for (const position of from) if (segments[position]?.kind === "globstar") from.add(position + 1);
    return from;
  }
}
