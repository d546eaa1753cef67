export { type IpFamily, NOT_PUBLIC_RANGES } from "./addresses.ts";
export type { Scope } from "./automaton.ts";
export type { Candidate, Explanation, LostBy } from "./explain.ts";
export { holdsNoCredentials } from "./git-settings.ts";
export { type LintFinding, lint, lintTracked, type TreeEntry } from "./lint.ts";
export { namesIn, nameText, VARIABLE_NAME } from "./names.ts";
export { parseRules } from "./parse-rules.ts";
export { compileRules, type Policy } from "./policy.ts";
export {
  extendPreset,
  getPreset,
  listPresets,
  PresetError,
  type PresetSummary,
  registerPreset,
} from "./presets.ts";
export { LEVEL, type Level, type LevelValue, LIMITS, levelName, type Rule, RuleError, type RuleType } from "./rule.ts";
export { isSensitive } from "./sensitive.ts";
