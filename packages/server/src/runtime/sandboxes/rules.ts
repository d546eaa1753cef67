import { compileRules, getPreset, PresetError, type Rule, RuleError } from "@agentfense/permission";
import { invalid, RuntimeError } from "../errors.ts";

/**
 * The rules of a sandbox as they are stored: those of the preset first, each with its type. Refused when one is malformed,
 * with its index among the rules of the request.
 */
export function storedRules(request: { readonly rules: readonly Rule[]; readonly preset: string }): readonly Rule[] {
  const preset = presetRules(request.preset);
  const rules = [...preset, ...request.rules];
  try {
    const { types } = compileRules(rules);
    return rules.map((rule, index) => withType(rule, types[index]!));
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw refused(error, preset.length);
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

/** An explicit `directory` takes no wildcards; the inferred one does, and stays to be inferred. */
function withType(rule: Rule, type: NonNullable<Rule["type"]>): Rule {
  if (rule.type === type || rule.type === "file" || rule.type === "directory") return rule;
  const typed = { ...rule, type };
  try {
    compileRules([typed]);
    return typed;
  } catch {
    return { ...rule, type: "glob" };
  }
}

function refused(error: RuleError, presetLength: number): RuntimeError {
  const index = error.index < presetLength ? error.index : error.index - presetLength;
  const own = new RuleError(index, error.pattern, error.reason);
  return new RuntimeError("INVALID_ARGUMENT", `permissions: ${own.message}`, {
    details: { rule: String(index), reason: error.reason },
    cause: error,
  });
}
