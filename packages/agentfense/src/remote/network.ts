import type { NetworkList } from "@agentfense/sdk";

/** A list as requests have it; the server reads the hosts. */
export function listMessage({ allow = [], presets = [] }: NetworkList) {
  const networkRules = allow.map((rule) => ({ host: typeof rule === "string" ? rule : rule.host }));
  return { networkRules, networkPresets: [...presets] };
}
