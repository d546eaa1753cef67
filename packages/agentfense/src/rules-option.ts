import { compileRules, getPreset, listPresets, type Policy, PresetError, type Rule } from "@agentfense/permission";
import {
  DEFAULT_PRESET,
  POLICY_FILE,
  type ProjectPolicy,
  protectPolicyFile,
  takenRules,
} from "@agentfense/sdk/project";
import { UsageError } from "./command.ts";
import { announcePolicy, findPolicy } from "./project-policy.ts";
import { readRulesFile } from "./rules-file.ts";

/** The ways to say which rules, for `parseArguments`. */
export const RULES_OPTIONS = {
  preset: { type: "string" },
  rules: { type: "string" },
  policy: { type: "boolean" },
} as const;

export const RULES_HELP = `  --preset NAME     one of these (default: what ${POLICY_FILE} in DIR says, else ${DEFAULT_PRESET}):
${listPresets()
  .map(({ name, description }) => `                      ${name.padEnd(13)}${description}`)
  .join("\n")}
  --rules FILE      a JSON or YAML list of { pattern, permission, type?, priority? }
  --no-policy       take no notice of ${POLICY_FILE}`;

interface RulesValues {
  readonly preset?: string | undefined;
  readonly rules?: string | undefined;
  readonly policy?: boolean | undefined;
}

export interface ChosenRules {
  /** As they were written. */
  readonly rules: readonly Rule[];
  /** In force: these, and that the policy of the project cannot be written. */
  readonly policy: Policy;
  /** A short name for them. */
  readonly label: string;
  readonly fromProject: boolean;
}

/** The rules for a directory, and a line on stderr if they are the project's own. */
export async function chooseRules(values: RulesValues, directory: string): Promise<ChosenRules> {
  const chosen = await rulesFor(values, await findPolicy(directory, values));
  if (chosen.fromProject) announcePolicy(["rules"]);
  return chosen;
}

/** The rules asked for, else the project's, else the default preset; never "no rules" by omission. */
export async function rulesFor(
  values: RulesValues,
  project: ProjectPolicy | undefined,
  otherwise: string = DEFAULT_PRESET,
): Promise<ChosenRules> {
  const { preset, rules: file } = values;
  if (preset !== undefined && file !== undefined) throw new UsageError("give --preset or --rules, not both");
  if (file !== undefined) return inForce(await readRulesFile(file), `rules ${file}`);
  if (preset !== undefined) return inForce(rulesOfPreset(preset), `preset ${preset}`);
  const fromProject = project?.preset !== undefined || project?.permissions !== undefined;
  if (!fromProject) return inForce(rulesOfPreset(otherwise), `preset ${otherwise}`);
  return inForce(takenRules({}, project), `rules from ${POLICY_FILE}`, true);
}

function inForce(rules: readonly Rule[], label: string, fromProject = false): ChosenRules {
  return { rules, policy: compileRules(protectPolicyFile(rules)), label, fromProject };
}

function rulesOfPreset(name: string): readonly Rule[] {
  try {
    return getPreset(name);
  } catch (error) {
    if (!(error instanceof PresetError)) throw error;
    throw new UsageError(error.message, { slip: { given: name, known: listPresets().map((preset) => preset.name) } });
  }
}
