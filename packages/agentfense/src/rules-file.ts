import { readFile } from "node:fs/promises";
import { parseRules, type Rule, RuleError } from "@agentfense/permission";
import { parseDocument } from "yaml";
import { UsageError } from "./command.ts";
import { printable } from "./terminal.ts";

/** The rules in a file: a JSON or YAML list (JSON is YAML too) of `{ pattern, permission, type?, priority? }`. */
export async function readRulesFile(path: string): Promise<Rule[]> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`cannot read the rules: ${printable(error.message)}`);
  });
  try {
    return parseRules(parseYaml(text));
  } catch (error) {
    if (!(error instanceof RuleError || error instanceof YamlError)) throw error;
    throw new UsageError(`${printable(path)}: ${error.message}`);
  }
}

class YamlError extends Error {}

function parseYaml(text: string): unknown {
  const document = parseDocument(text, { uniqueKeys: true });
  const [problem] = document.errors;
  if (problem) throw new YamlError(problem.message.split(":\n")[0]);
  try {
    // Aliases are resolved only here, with a bound on what they may grow to.
    return document.toJS();
  } catch (error) {
    throw new YamlError(
      `${(error as Error).message}\nIn YAML a pattern that begins with * needs quotes: pattern: "**/*"`,
    );
  }
}
