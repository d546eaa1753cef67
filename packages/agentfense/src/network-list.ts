import type { NetworkList, NetworkMode } from "@agentfense/sdk";
import { UsageError } from "./command-failure.ts";

/** What the options `--allow` and `--allow-preset` say. */
interface AllowValues {
  readonly allow?: readonly string[] | undefined;
  readonly "allow-preset"?: readonly string[] | undefined;
}

/** Nothing when no host is listed. */
export function listedHosts({ allow = [], "allow-preset": presets = [] }: AllowValues): NetworkList | undefined {
  if (allow.length + presets.length === 0) return undefined;
  return { allow, presets: presets.flatMap((names) => names.split(",")) };
}

/** The network that a command line asks for. */
export function askedNetwork(
  values: AllowValues & { readonly network?: NetworkMode | undefined },
): NetworkMode | NetworkList | undefined {
  const list = listedHosts(values);
  if (list === undefined || values.network === undefined || values.network === "filtered")
    return list ?? values.network;
  throw new UsageError(`--allow goes with the network filtered, not with ${values.network}`);
}
