import { compileRules, getPreset, type Policy, parseRules, type Rule, RuleError } from "@agentfense/permission";
import {
  DEFAULT_PRESET,
  POLICY_FILE,
  type ProjectPolicy,
  parseYaml,
  protectPolicyFile,
  readTextFile,
  TextFileError,
  takenRules,
  YamlError,
  type YamlText,
} from "@agentfense/sdk/project";
import { UsageError } from "./command-failure.ts";
import { announcePolicy, findPolicy } from "./project-policy.ts";
import { printable } from "./terminal.ts";

export interface RulesValues {
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
  if (preset !== undefined) return inForce(getPreset(preset), `preset ${preset}`);
  const fromProject = project?.preset !== undefined || project?.permissions !== undefined;
  if (!fromProject) return inForce(getPreset(otherwise), `preset ${otherwise}`);
  return inForce(takenRules({}, project), `rules from ${POLICY_FILE}`, true);
}

function inForce(rules: readonly Rule[], label: string, fromProject = false): ChosenRules {
  return { rules, policy: compileRules(protectPolicyFile(rules)), label, fromProject };
}

/** The rules in a file: a JSON or YAML list (JSON is YAML too) of `{ pattern, permission, type?, priority? }`. */
export async function readRulesFile(path: string): Promise<Rule[]> {
  const text = await readTextFile(path).catch((error: Error) => {
    const reason = error instanceof TextFileError ? `${path} ${error.message}` : error.message;
    throw new UsageError(`cannot read the rules: ${printable(reason)}`);
  });
  try {
    const yaml = await parseYaml(text);
    return placingErrors(path, yaml, () => parseRules(yaml.value));
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw new UsageError(`${printable(path)}:${error.line}:${error.column}: ${error.message}`);
  }
}

/** A malformed rule is named with its place in the file. */
function placingErrors<T>(path: string, yaml: YamlText, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    const { line, column } = yaml.placeOf(error.index < 0 ? [] : [error.index]);
    throw new UsageError(`${printable(path)}:${line}:${column}: ${error.message}`);
  }
}
