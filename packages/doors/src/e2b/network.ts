import type { NetworkList, NetworkMode } from "@agentfense/sdk";
import { E2bFailure } from "./failure.ts";

/** What denies everything. */
const ALL: ReadonlySet<string> = new Set(["0.0.0.0/0", "::/0"]);
const OFFERED: ReadonlySet<string> = new Set(["allowOut", "denyOut", "allowPublicTraffic"]);

/**
 * The network that E2B's options mean. A list of host names is what can be enforced; addresses and what else there is are refused. Undefined:
 * what the template has.
 *
 * | | |
 * | --- | --- |
 * | `allow_internet_access: false`, or `denyOut` of everything | none |
 * | the same with names in `allowOut` | filtered, these names |
 * | `allowOut` without `denyOut` of everything | refused: at E2B that keeps nothing away |
 */
export function networkOf(
  options: object | undefined,
  internet: boolean | undefined,
): NetworkMode | NetworkList | undefined {
  const given = (options ?? {}) as Readonly<Record<string, unknown>>;
  const other = Object.keys(given).find(
    (name) => !OFFERED.has(name) && given[name] !== null && given[name] !== undefined,
  );
  if (other !== undefined) throw unenforceable(`network.${other}`);
  const [allowed, denied] = [namesIn(given.allowOut, "allowOut"), namesIn(given.denyOut, "denyOut")];
  const deniesAll = internet === false || denied.some((each) => ALL.has(each));
  const single = denied.find((each) => !ALL.has(each));
  if (single !== undefined) throw unenforceable(`network.denyOut of ${single}`);
  if (allowed.length > 0 && !deniesAll) throw unenforceable("network.allowOut without denyOut of 0.0.0.0/0");
  if (!deniesAll) return undefined;
  const address = allowed.find((each) => /^[\d.:/]+$|:/.test(each));
  if (address !== undefined) throw unenforceable(`network.allowOut of the address ${address}`);
  return allowed.length === 0 ? "none" : { allow: allowed };
}

function namesIn(given: unknown, name: string): readonly string[] {
  if (given === undefined || given === null) return [];
  if (Array.isArray(given) && given.every((each) => typeof each === "string")) return given;
  throw new E2bFailure("invalid_argument", `network.${name} is a list of texts`);
}

function unenforceable(what: string): E2bFailure {
  return new E2bFailure("invalid_argument", `${what} cannot be enforced here, and is not ignored`);
}
