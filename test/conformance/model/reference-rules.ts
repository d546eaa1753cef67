import type { Level, Rule } from "@agentfense/permission";

/**
 * The rule language, written a second time and as naively as possible: every question looks at every rule. It shares
 * nothing with packages/permission but the type of a rule, so that a mistake has to be made twice to stay unseen.
 *
 * Only what RULE_SHAPES of this suite can produce is understood: literal text, `*`, `?`, `**` as a whole segment,
 * `[ab]` and one level of `{a,b}` within a segment.
 */
const STRICTNESS: readonly Level[] = ["none", "view", "read", "write"];
const TYPE_RANK = { file: 2, directory: 1, glob: 0 };

/** The level of a path ("/a/b"; the root is "/") by the rules alone. */
export function referenceLevel(rules: readonly Rule[], path: string): Level {
  const ancestors = prefixesOf(path);
  const candidates = rules.flatMap((rule, index) => {
    if (replacedLater(rules, index)) return [];
    return plainPatterns(rule).flatMap((pattern) => {
      const applies =
        matches(pattern, path) ||
        // A directory that is hidden hides all below it, at the rank of the rule that hides it.
        (rule.permission === "none" && ancestors.some((ancestor) => matches(pattern, ancestor)));
      return applies ? [{ rule, pattern }] : [];
    });
  });
  candidates.sort(
    (a, b) =>
      (b.rule.priority ?? 0) - (a.rule.priority ?? 0) ||
      TYPE_RANK[b.pattern.type] - TYPE_RANK[a.pattern.type] ||
      b.pattern.literal - a.pattern.literal ||
      STRICTNESS.indexOf(a.rule.permission) - STRICTNESS.indexOf(b.rule.permission),
  );
  return candidates[0]?.rule.permission ?? "none";
}

interface PlainPattern {
  readonly type: "file" | "directory" | "glob";
  readonly segments: readonly string[];
  /** Characters of literal text: the more, the more specific. */
  readonly literal: number;
}

function plainPatterns(rule: Rule): PlainPattern[] {
  const type = typeOf(rule);
  const anchored = rule.pattern.includes("/");
  return expand(rule.pattern).map((text) => {
    const segments = text.split("/").filter((segment) => segment !== "");
    return {
      type,
      segments: anchored ? segments : ["**", ...segments],
      literal: segments.join("").replace(/\[[^\]]*\]|[*?]/g, "").length,
    };
  });
}

function typeOf(rule: Rule): "file" | "directory" | "glob" {
  if (rule.type === "file" || rule.type === "directory") return rule.type;
  if (rule.pattern.endsWith("/")) return "directory";
  return rule.pattern.includes("/") && !/[*?[{]/.test(rule.pattern) ? "file" : "glob";
}

function expand(text: string): string[] {
  const braces = /\{([^{}]*)\}/.exec(text);
  if (braces === null) return [text];
  const [whole, choices = ""] = braces;
  return choices.split(",").flatMap((choice) => expand(text.replace(whole, choice)));
}

function matches(pattern: PlainPattern, path: string): boolean {
  const names = path.split("/").filter((name) => name !== "");
  if (pattern.type !== "directory") return matchSegments(pattern.segments, names);
  return matchSegments([...pattern.segments, "**"], names);
}

function matchSegments(pattern: readonly string[], names: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return names.length === 0;
  if (first === "**") return names.some((_name, at) => matchSegments(rest, names.slice(at))) || matchSegments(rest, []);
  const [name, ...below] = names;
  return name !== undefined && matchName(first, name) && matchSegments(rest, below);
}

function matchName(pattern: string, name: string): boolean {
  const source = pattern.replace(/\[[^\]]*\]|[*?]|[^*?[]+/g, (part) => {
    if (part === "*") return ".*";
    if (part === "?") return ".";
    return part.startsWith("[") ? part : part.replace(/[.\\]/g, "\\$&");
  });
  return new RegExp(`^${source}$`, "su").test(name);
}

/** The same pattern twice at one priority: the later one counts. */
function replacedLater(rules: readonly Rule[], index: number): boolean {
  const rule = rules[index];
  return rules.some(
    (other, at) =>
      at > index &&
      rule !== undefined &&
      other.pattern === rule.pattern &&
      typeOf(other) === typeOf(rule) &&
      (other.priority ?? 0) === (rule.priority ?? 0),
  );
}

/** "/a/b/c" → "/", "/a", "/a/b". */
function prefixesOf(path: string): string[] {
  const names = path.split("/").filter((name) => name !== "");
  return names.map((_name, count) => `/${names.slice(0, count).join("/")}`);
}
