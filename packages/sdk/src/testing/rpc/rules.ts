import type { Rule } from "@agentfense/permission";
import { PatternType, type PermissionRule, type PermissionRuleSchema } from "@agentfense/protocol/common";
import { PATTERN_TYPES, PERMISSIONS } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { invalid } from "../faults.ts";
import { wordFor } from "./fields.ts";

/** A level that is missing or unknown is refused with the rule's index. */
export function rulesOf(permissions: readonly PermissionRule[]): Rule[] {
  return permissions.map((message, index) => {
    const at = `permissions[${index}]`;
    const permission = wordFor(PERMISSIONS, message.permission, `${at}: permission`);
    if (permission === undefined) {
      throw invalid(`${at}: permission is required: none, view, read or write`, { index: String(index) });
    }
    // Old clients say "glob" for every pattern, so that only the other two types are their intent.
    const asked = message.type === PatternType.GLOB ? 0 : message.type;
    const type = wordFor(PATTERN_TYPES, asked, `${at}: type`);
    const { pattern, priority } = message;
    return { pattern, permission, priority, ...(type === undefined ? {} : { type }) };
  });
}

export function ruleMessage(rule: Rule): MessageInitShape<typeof PermissionRuleSchema> {
  return {
    pattern: rule.pattern,
    type: rule.type === undefined ? PatternType.UNSPECIFIED : PATTERN_TYPES[rule.type],
    permission: PERMISSIONS[rule.permission],
    priority: rule.priority ?? 0,
  };
}
