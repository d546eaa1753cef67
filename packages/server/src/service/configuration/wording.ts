import { nearestName } from "@agentfense/protocol/nearest";

// How complaints about a configuration are put.

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
