import { getPreset, listPresets, PresetError, type Rule } from "@agentfense/permission";
import type { PermissionRuleSchema } from "@agentfense/protocol/common";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { UsageError } from "../command.ts";
import { readRulesFile } from "../rules-file.ts";
import { PATTERN_TYPES, PERMISSIONS } from "./words.ts";

export const REMOTE_RULES_OPTIONS = { preset: { type: "string" }, rules: { type: "string" } } as const;

export const REMOTE_RULES_HELP = `  --preset NAME     one of these:
${listPresets()
  .map(({ name, description }) => `                      ${name.padEnd(13)}${description}`)
  .join("\n")}
  --rules FILE      a JSON or YAML list of { pattern, permission, type?, priority? }; with --preset, after its rules`;

interface RemoteRules {
  readonly preset: string;
  readonly permissions: MessageInitShape<typeof PermissionRuleSchema>[];
}

/** The rules asked for; undefined when none were. */
export async function chooseRemoteRules(values: {
  readonly preset?: string | undefined;
  readonly rules?: string | undefined;
}): Promise<RemoteRules | undefined> {
  if (values.preset === undefined && values.rules === undefined) return undefined;
  if (values.preset !== undefined) requirePreset(values.preset);
  const rules = values.rules === undefined ? [] : await readRulesFile(values.rules);
  return { preset: values.preset ?? "", permissions: rules.map(ruleMessage) };
}

function requirePreset(name: string): void {
  try {
    getPreset(name);
  } catch (error) {
    throw error instanceof PresetError ? new UsageError(error.message) : error;
  }
}

function ruleMessage({ pattern, permission, type, priority }: Rule): MessageInitShape<typeof PermissionRuleSchema> {
  return {
    pattern,
    permission: PERMISSIONS[permission]!,
    type: type === undefined ? 0 : PATTERN_TYPES[type]!,
    priority: priority ?? 0,
  };
}
