import { UsageError } from "../command.ts";

/** `NAME=VALUE` pairs of an option that may be repeated. */
export function parseAssignments(texts: readonly string[], option: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const equals = text.indexOf("=");
      if (equals < 1) throw new UsageError(`${option} takes NAME=VALUE, not ${JSON.stringify(text)}`);
      return [text.slice(0, equals), text.slice(equals + 1)];
    }),
  );
}
