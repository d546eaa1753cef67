import { getPreset, PresetError, parseRules, type Rule, RuleError } from "@agentfense/permission";
import { PatternType, type PermissionRule, type PermissionRuleSchema } from "@agentfense/protocol/common";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RuleOptions } from "../../model/options.ts";
import { invalid } from "./numbers.ts";
import { PATTERN_TYPES, PERMISSIONS, wordOf } from "./words.ts";

const DEFAULT_PRESET = "agent-safe";
const LARGEST_INT32 = 2 ** 31 - 1;

/**
 * The rules that are meant, spelled out: presets are those of this process, so that registered ones work with any server. For
 * what absent and given mean see RuleOptions.
 */
export function rulesFor({ preset, permissions }: RuleOptions): MessageInitShape<typeof PermissionRuleSchema>[] {
  const base = preset ?? (permissions === undefined ? DEFAULT_PRESET : undefined);
  try {
    const rules = [...(base === undefined ? [] : getPreset(base)), ...(permissions ?? [])];
    return parseRules(rules).map(ruleMessage);
  } catch (error) {
    if (error instanceof PresetError || error instanceof RuleError) throw invalid(error.message, error);
    throw error;
  }
}

function ruleMessage(rule: Rule, index: number): MessageInitShape<typeof PermissionRuleSchema> {
  const { pattern, permission, type, priority = 0 } = rule;
  if (Math.abs(priority) > LARGEST_INT32) throw new RuleError(index, pattern, "its priority has more than 31 bits");
  return {
    pattern,
    permission: PERMISSIONS[permission],
    type: type === undefined ? PatternType.UNSPECIFIED : PATTERN_TYPES[type],
    priority,
  };
}

/** A rule of an answer. What is not given is absent, as in the rules that callers write. */
export function ruleOf({ pattern, permission, type, priority }: PermissionRule): Rule {
  return {
    pattern,
    permission: wordOf(PERMISSIONS, permission, "permission"),
    ...(type === PatternType.UNSPECIFIED ? {} : { type: wordOf(PATTERN_TYPES, type, "type of a pattern") }),
    ...(priority === 0 ? {} : { priority }),
  };
}
