import { PatternType, type PermissionRule, type PermissionRuleSchema } from "@agentfense/protocol/common";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { PATTERN_TYPES, PERMISSIONS, type Rule, wordFor } from "./enums.ts";
import { given, invalid } from "./fields.ts";

/**
 * The rules of a request. A level that is missing or unknown is refused with the rule's index: taken for "none" it would hide
 * a mistake, taken for anything else a secret would show.
 */
export function rulesOf(permissions: readonly PermissionRule[]): Rule[] {
  return permissions.map((message, index) => {
    const at = `permissions[${index}]`;
    const permission = wordFor(PERMISSIONS, message.permission, `${at}: permission`);
    if (permission === undefined) {
      throw invalid(`${at}: permission is required: none, view, read or write`, { index: String(index) });
    }
    return {
      pattern: message.pattern,
      permission,
      priority: message.priority,
      ...given({ type: typeOf(message, at) }),
    };
  });
}

/** Clients of the earlier server say "glob" for every pattern, so that only the other two types are their intent. */
function typeOf(message: PermissionRule, at: string): Rule["type"] {
  return message.type === PatternType.GLOB ? undefined : wordFor(PATTERN_TYPES, message.type, `${at}: type`);
}

export function ruleMessage(rule: Rule): MessageInitShape<typeof PermissionRuleSchema> {
  return {
    pattern: rule.pattern,
    type: rule.type === undefined ? PatternType.UNSPECIFIED : PATTERN_TYPES[rule.type],
    permission: PERMISSIONS[rule.permission],
    priority: rule.priority ?? 0,
  };
}
