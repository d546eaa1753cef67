import { UsageError } from "../command-failure.ts";
import { option } from "../option.ts";

/** `NAME=VALUE` */
function assignment(text: string, spelling: string): readonly [name: string, value: string] {
  const equals = text.indexOf("=");
  if (equals < 1) throw new UsageError(`${spelling} takes NAME=VALUE, not ${JSON.stringify(text)}`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}

export const LABEL = option({
  name: "label",
  value: "NAME=VALUE",
  isRepeated: true,
  about: "kept with it (may be repeated)",
  parse: assignment,
});

/** The rules asked for; undefined when none were. */
export async function askedRules(values: {
  readonly preset?: string | undefined;
  readonly rules?: string | undefined;
}) {
  if (values.preset === undefined && values.rules === undefined) return undefined;
  if (values.rules === undefined) return { preset: values.preset };
  const { readRulesFile } = await import("../rules.ts");
  return { preset: values.preset, permissions: await readRulesFile(values.rules) };
}
