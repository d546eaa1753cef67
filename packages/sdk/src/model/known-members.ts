import { nearestName } from "@agentfense/protocol/nearest";
import { InvalidConfigurationError } from "../errors.ts";

/** The members that an options object can have. The compiler notices one that is missing, or too many. */
export type MembersOf<Options> = Readonly<Record<keyof Options, true>>;

/**
 * Refuses members that mean nothing: whoever wrote them, in a language or a file that no compiler looks at, would take a limit or
 * a rule for set that is not.
 */
export function requireKnownMembers<Options extends object>(
  given: Options,
  known: MembersOf<Options>,
  what: string,
): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || Object.hasOwn(known, name)) continue;
    const near = nearestName(name, Object.keys(known));
    const hint = near === undefined ? `there are: ${Object.keys(known).join(", ")}` : `did you mean ${near}?`;
    throw new InvalidConfigurationError(`${what} have no member ${JSON.stringify(name)}`, {
      code: "INVALID_ARGUMENT",
      hint,
    });
  }
}
