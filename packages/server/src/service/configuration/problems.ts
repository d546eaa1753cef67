import { nearestName } from "@agentfense/protocol/nearest";

/** The configuration cannot be used. The message has every problem found, one a line. */
export class ConfigurationError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigurationError";
    this.problems = problems;
  }
}

/** "; did you mean x?" when one of the names is a slip of the finger away. */
export function suggestion(given: string, names: Iterable<string>): string {
  const near = nearestName(given, names);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

/** A value in a message: as JSON, and not without end. */
export function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? String(value);
  return json.length > 80 ? `${json.slice(0, 80)}…` : json;
}
