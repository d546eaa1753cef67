import { parseRules, type Rule, RuleError } from "@agentfense/permission";
import { parseYaml, readTextFile, TextFileError, YamlError, type YamlText } from "@agentfense/sdk/project";
import { UsageError } from "./command.ts";
import { printable } from "./terminal.ts";

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
