import { compileRules, getPreset, listPresets, type Policy, PresetError } from "@agentfense/permission";
import { UsageError } from "./command.ts";
import { readRulesFile } from "./rules-file.ts";

/** The two ways to say which rules, for `parseArguments`. */
export const RULES_OPTIONS = { preset: { type: "string" }, rules: { type: "string" } } as const;

const DEFAULT_PRESET = "agent-safe";

export const RULES_HELP = `  --preset NAME     one of these (default ${DEFAULT_PRESET}):
${listPresets()
  .map(({ name, description }) => `                      ${name.padEnd(13)}${description}`)
  .join("\n")}
  --rules FILE      a JSON or YAML list of { pattern, permission, type?, priority? }`;

/** The rules asked for, compiled, and a short name for them. Neither option: the default preset, never "no rules". */
export async function chooseRules(options: {
  readonly preset?: string | undefined;
  readonly rules?: string | undefined;
}): Promise<{ policy: Policy; label: string }> {
  if (options.preset !== undefined && options.rules !== undefined) {
    throw new UsageError("give --preset or --rules, not both");
  }
  if (options.rules !== undefined) {
    return { policy: compileRules(await readRulesFile(options.rules)), label: `rules ${options.rules}` };
  }
  const preset = options.preset ?? DEFAULT_PRESET;
  try {
    return { policy: compileRules(getPreset(preset)), label: `preset ${preset}` };
  } catch (error) {
    if (error instanceof PresetError) throw new UsageError(error.message);
    throw error;
  }
}
