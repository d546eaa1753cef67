import { compileRules, getPreset, type Policy, PresetError, type Rule, RuleError } from "@agentfense/permission";
import { Fault, invalid } from "../faults.ts";

/**
 * Rules as a sandbox keeps them: those of the preset first, each with its type. Malformed ones are refused by their
 * index.
 */
export function storedRules(permissions: readonly Rule[], preset: string): readonly Rule[] {
  const before = presetRules(preset);
  const rules = [...before, ...permissions];
  try {
    const { types } = compileRules(rules);
    return rules.map((rule, index) => withType(rule, types[index]));
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    const index = error.index < before.length ? error.index : error.index - before.length;
    const own = new RuleError(index, error.pattern, error.reason);
    throw new Fault("INVALID_ARGUMENT", `permissions: ${own.message}`, {
      details: { rule: String(index), reason: error.reason },
    });
  }
}

function presetRules(name: string): readonly Rule[] {
  if (name === "") return [];
  try {
    return getPreset(name);
  } catch (error) {
    if (error instanceof PresetError) throw invalid(error.message);
    throw error;
  }
}

/** An inferred directory may have wildcards, an explicit one may not: that one stays to be inferred. */
function withType(rule: Rule, type: Rule["type"]): Rule {
  if (type === undefined || rule.type === "file" || rule.type === "directory") return rule;
  const typed = { ...rule, type };
  try {
    compileRules([typed]);
    return typed;
  } catch {
    return { ...rule, type: "glob" };
  }
}

export interface PathAnswer {
  readonly path: string;
  readonly permission: Rule["permission"];
  readonly deciding: RuleStanding | undefined;
  readonly losing: readonly RuleStanding[];
  readonly text: string;
}

export interface RuleStanding {
  readonly index: number;
  readonly rule: Rule;
  readonly reason: string;
}

/** Which rule decides about a path, and which ones lost. */
export function explain(policy: Policy, path: string): PathAnswer {
  const { level, reason, candidates } = policy.explain(path);
  const standing = candidates.map(({ rule: index, reason: why, lostBy }) => ({
    standing: { index, rule: policy.rules[index]!, reason: why },
    lost: lostBy !== undefined,
  }));
  return {
    path,
    permission: level,
    deciding: standing.find(({ lost }) => !lost)?.standing,
    losing: standing.filter(({ lost }) => lost).map(({ standing: one }) => one),
    text: `${path} is ${level}: ${reason}`,
  };
}
