import { resolveRules } from "./resolve.ts";
import { isLevel, LIMITS, type Rule, RuleError, type RuleType } from "./rule.ts";

const FIELDS: ReadonlySet<string> = new Set(["pattern", "permission", "type", "priority"]);
const TYPES: ReadonlySet<unknown> = new Set<RuleType>(["file", "directory", "glob"]);

/**
 * Rules from data that nobody has checked, such as parsed JSON or YAML.
 *
 * What comes back compiles. An unknown field is refused and not skipped: `priorty: 100` must not quietly mean 0.
 * Throws a `RuleError` for the first rule that is wrong.
 */
export function parseRules(value: unknown): Rule[] {
  if (!Array.isArray(value)) throw new RuleError(-1, "", "rules must be a list");
  if (value.length > LIMITS.rules) {
    throw new RuleError(-1, "", `there are ${value.length} rules, and at most ${LIMITS.rules} are allowed`);
  }
  const rules = Array.from(value, parseRule);
  resolveRules(rules);
  return rules;
}

function parseRule(value: unknown, index: number): Rule {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new RuleError(index, "", "a rule must be an object with pattern and permission");
  }
  const { pattern, permission, type, priority }: Partial<Record<string, unknown>> = { ...value };
  if (typeof pattern !== "string") throw new RuleError(index, "", "pattern must be a string");
  for (const field of Object.keys(value)) {
    if (!FIELDS.has(field)) throw new RuleError(index, pattern, `unknown field ${JSON.stringify(field.slice(0, 100))}`);
  }
  if (!isLevel(permission)) {
    throw new RuleError(index, pattern, "permission must be one of none, view, read, write");
  }
  if (type !== undefined && !isRuleType(type)) {
    throw new RuleError(index, pattern, "type must be one of file, directory, glob");
  }
  if (priority !== undefined && typeof priority !== "number") {
    throw new RuleError(index, pattern, "priority must be a whole number");
  }
  return {
    pattern,
    permission,
    ...(type === undefined ? {} : { type }),
    ...(priority === undefined ? {} : { priority }),
  };
}

function isRuleType(value: unknown): value is RuleType {
  return TYPES.has(value);
}

/**
 * The names on the way from the root of the workspace to a path: `/` has none, `/a/b` has two.
 * A path that is not written in its one normal form is a mistake of the caller, and guessing could answer for another.
 */
export function pathNames(path: string): string[] {
  if (path === "/") return [];
  const names = path.split("/");
  if (names.shift() !== "" || names.length === 0) throw notAPath(path);
  for (const name of names) {
    if (name === "" || name === "." || name === ".." || name.includes("\0")) throw notAPath(path);
  }
  return names;
}

function notAPath(path: string): TypeError {
  return new TypeError(
    `${JSON.stringify(path)} is not a path of the workspace: it starts with a slash, has no empty, . or .. segment, ` +
      "and does not end in a slash",
  );
}
