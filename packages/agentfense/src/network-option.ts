import type { NetworkList, NetworkMode } from "@agentfense/sdk";
import { UsageError } from "./command.ts";

/** The options that list the hosts of a filtered network. */
export const ALLOW_OPTIONS = {
  allow: { type: "string", multiple: true },
  "allow-preset": { type: "string", multiple: true },
} as const;

export const ALLOW_HELP = `  --allow HOST[:PORTS]  let it reach this host, and only what is listed so (may be repeated): pypi.org, '*.npmjs.org',
                    github.com:22,443 (default ports: 443 and 80). Means the network filtered
  --allow-preset LIST  the same for the hosts of npm, pypi, github … (may be repeated, or separated by commas)`;

interface AllowValues {
  readonly allow?: readonly string[] | undefined;
  readonly "allow-preset"?: readonly string[] | undefined;
}

/** Nothing when no host is listed. */
export function listedHosts(values: AllowValues): NetworkList | undefined {
  const { allow = [], "allow-preset": presets = [] } = values;
  if (allow.length + presets.length === 0) return undefined;
  return { allow, presets: presets.flatMap((names) => names.split(",")) };
}

/** The network that a command line asks for. */
export function askedNetwork(
  values: AllowValues & { readonly network?: string | undefined },
): NetworkMode | NetworkList | undefined {
  const list = listedHosts(values);
  if (list === undefined || values.network === undefined || values.network === "filtered") {
    return list ?? (values.network as NetworkMode | undefined);
  }
  throw new UsageError(`--allow goes with the network filtered, not with ${values.network}`);
}
