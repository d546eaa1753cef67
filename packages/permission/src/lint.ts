import type { Scope } from "./automaton.ts";
import { holdsNoCredentials } from "./git-settings.ts";
import { findKeys, type KeysInText } from "./keys-in-text.ts";
import { pathNames } from "./parse-rules.ts";
import { growTree } from "./pattern-tree.ts";
import { compileRules, type Policy } from "./policy.ts";
import { getPreset } from "./presets.ts";
import { type Contender, type ResolvedRules, rankDifference, resolveRules } from "./resolve.ts";
import { LEVEL, type Level, levelName, type Rule } from "./rule.ts";
import { type Matches, TreeWalk } from "./tree-walk.ts";

/** One entry of the workspace the rules are meant for; the caller lists them, in any order. */
export interface TreeEntry {
  /** From the root of the workspace: `/src/main.ts`. */
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
}

/**
 * What looks wrong with a rule set. `rule` is the index of the rule it is about.
 *
 * | kind            | meaning                                                                                   |
 * | --------------- | ----------------------------------------------------------------------------------------- |
 * | matches-nothing | no entry of the tree matches; a warning when the rule protects one fixed place: a typo?   |
 * | secret-visible  | something that looks like a secret is not hidden; a warning when it can be read           |
 * | secret-inside   | a file that can be read holds what looks like a key; `line` is where the first one begins |
 * | tie             | two rules of one rank and different levels match an entry; `rule` is the stricter, it won |
 * | replaced        | a later rule has the same pattern, type and priority                                      |
 * | tracked-hidden  | git tracks files that the rule hides, and its history is to be read                       |
 */
export type LintFinding = {
  readonly severity: "warning" | "info";
  readonly rule: number;
  readonly message: string;
} & (
  | { readonly kind: "matches-nothing"; readonly pattern: string }
  | { readonly kind: "secret-visible"; readonly path: string; readonly level: Level }
  | {
      readonly kind: "secret-inside";
      readonly path: string;
      readonly level: Level;
      /** What kind of key: `GitHub token`. */
      readonly secret: string;
      readonly line: number;
      readonly masked: string;
      readonly count: number;
    }
  | { readonly kind: "tie"; readonly other: number; readonly path: string }
  | { readonly kind: "replaced"; readonly by: number }
  | { readonly kind: "tracked-hidden"; readonly path: string; readonly count: number }
);

/**
 * Checks rules against a workspace. Throws a `RuleError` when they do not even compile. `textOf` reads a file to look for
 * keys in; it is asked only for files that the rules let an agent read and whose names do not tell already, and for
 * `.git/config`.
 */
export function lint<Entry extends TreeEntry>(
  rules: readonly Rule[],
  tree: Iterable<Entry>,
  textOf: (entry: Entry) => string | undefined = () => undefined,
): LintFinding[] {
  const policy = compileRules(rules);
  const secrets = secretLooking();
  const resolved = resolveRules(rules);
  const { contenders } = resolved;
  const walk = new TreeWalk(growTree(contenders), contenders);
  const visible: LintFinding[] = [];
  const ties = new Map<string, LintFinding>();
  const matched = new Set<number>();

  const note = (path: string, { own, counting }: Matches) => {
    for (const order of own) matched.add(contenders[order]!.rule.index);
    for (const tie of tiesAt(path, counting, contenders)) {
      const key = `${tie.rule} ${tie.other}`;
      if (!ties.has(key)) ties.set(key, tie);
    }
  };
  note("/", walk.root);
  for (const entry of tree) {
    const { path, type } = entry;
    const names = pathNames(path);
    for (const place of walk.to(names)) note(`/${names.slice(0, place.depth).join("/")}`, place);
    if (type === "directory") continue;
    const scope = policy.decide(path);
    if (scope.level === LEVEL.none) continue;
    if (secrets.decide(path).level === LEVEL.none) {
      if (!isClean(path, () => textOf(entry))) visible.push(visibleSecret(path, scope));
    } else if (type === "file" && scope.level >= LEVEL.read) {
      for (const keys of findKeys(textOf(entry) ?? "")) visible.push(secretInside(path, scope, keys));
    }
  }
  return [...visible, ...unmatched(resolved, matched), ...ties.values(), ...replaced(resolved)];
}

/**
 * The files among those that the repository at the top of the workspace tracks that rules hide, one finding for each rule, while the
 * history, which has their content, is to be read. To git in a sandbox they look deleted.
 */
export function lintTracked(rules: readonly Rule[], tracked: Iterable<string>): LintFinding[] {
  const policy = compileRules(rules);
  if (policy.decide("/.git/objects/pack").level < LEVEL.read) return [];
  const commits = policy.decide("/.git/index").level === LEVEL.write;
  const hidden = new Map<number, Set<string>>();
  for (const path of tracked) {
    const { level, rule } = policy.decide(path);
    if (level !== LEVEL.none) continue;
    const paths = hidden.get(rule) ?? new Set();
    hidden.set(rule, paths.add(path));
  }
  return [...hidden].map(([rule, paths]) => {
    const [path = ""] = paths;
    const count = paths.size;
    const those = count === 1 ? path : `${path} and ${count - 1} more`;
    const deletes = commits ? ", and a commit of all that changed (git add -A) deletes it" : "";
    return {
      kind: "tracked-hidden",
      severity: "warning",
      rule,
      path,
      count,
      message: `rule ${rule} hides ${those}, but git tracks it: its history shows the content${deletes}`,
    };
  });
}

/** Hides exactly what looks like a secret: what `agent-safe` hides, and of a repository what may hold a token. */
function secretLooking(): Policy {
  const hidden = getPreset("agent-safe").filter(
    ({ permission, pattern }) => permission === "none" && pattern !== "**/.git/**",
  );
  return compileRules([
    { pattern: "**/*", permission: "read" },
    { pattern: "**/.git/{config,credentials}", permission: "none", priority: 100 },
    ...hidden,
  ]);
}

/** The settings of a repository, with nothing in them that could be a credential. */
function isClean(path: string, textOf: () => string | undefined): boolean {
  if (!path.endsWith("/.git/config")) return false;
  const text = textOf();
  return text !== undefined && holdsNoCredentials(text);
}

function visibleSecret(path: string, scope: Scope): LintFinding {
  const level = levelName(scope.level);
  return {
    kind: "secret-visible",
    severity: level === "view" ? "info" : "warning",
    rule: scope.rule,
    path,
    level,
    message: `${path} looks like a secret, and rule ${scope.rule} gives it the level ${level}`,
  };
}

function secretInside(path: string, scope: Scope, { kind, line, masked, count }: KeysInText): LintFinding {
  const level = levelName(scope.level);
  const what = count === 1 ? `${kind}, ${masked}` : `${kind}, ${masked} and ${count - 1} more`;
  return {
    kind: "secret-inside",
    severity: "warning",
    rule: scope.rule,
    path,
    level,
    secret: kind,
    line,
    masked,
    count,
    message: `${path}:${line} holds what looks like a secret (${what}), and rule ${scope.rule} gives it the level ${level}`,
  };
}

/** The rules whose rank is that of the deciding one and whose level is not. */
function tiesAt(path: string, counting: readonly number[], contenders: readonly Contender[]) {
  const winner = contenders[counting.reduce((a, b) => Math.min(a, b), contenders.length)];
  if (winner === undefined) return [];
  return counting
    .map((order) => contenders[order]!)
    .filter((other) => other.rule.level !== winner.rule.level && rankDifference(other, winner) === undefined)
    .map(({ rule }): LintFinding & { kind: "tie" } => ({
      kind: "tie",
      severity: "warning",
      rule: winner.rule.index,
      other: rule.index,
      path,
      message:
        `rules ${winner.rule.index} and ${rule.index} have the same rank for ${path}; ` +
        `the stricter, ${levelName(winner.rule.level)}, wins. A priority would say which is meant`,
    }));
}

function unmatched({ rules, replacedBy }: ResolvedRules, matched: ReadonlySet<number>): LintFinding[] {
  return rules
    .filter(({ index }) => !matched.has(index) && !replacedBy.has(index))
    .map(({ index, rule, level, alternatives }) => {
      // A rule for any depth is a precaution, and a place to write may not exist yet.
      const fixedPlace = alternatives.some(({ segments }) => segments[0]?.kind !== "globstar");
      return {
        kind: "matches-nothing",
        severity: fixedPlace && level < 2 ? "warning" : "info",
        rule: index,
        pattern: rule.pattern,
        message: `rule ${index} (${JSON.stringify(rule.pattern)}) matches nothing`,
      };
    });
}

function replaced({ replacedBy }: ResolvedRules): LintFinding[] {
  return [...replacedBy].map(([rule, by]) => ({
    kind: "replaced",
    severity: "warning",
    rule,
    by,
    message: `rule ${rule} has no effect: rule ${by} is the same pattern at the same priority`,
  }));
}
