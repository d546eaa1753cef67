import type { CreateSandboxRequestSchema, NetworkRule as NetworkRuleMessage } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { NetworkList, NetworkRule, SandboxOptions } from "../../model/options.ts";
import { NETWORKS, numberFor } from "./words.ts";

type NetworkFields = Pick<
  MessageInitShape<typeof CreateSandboxRequestSchema>,
  "network" | "networkRules" | "networkPresets"
>;

/** What a request says of the network: a word, or a list, which means a filtered one. */
export function networkFields(network: SandboxOptions["network"]): NetworkFields {
  if (typeof network !== "object") return { network: numberFor(NETWORKS, network, "network") };
  return { network: NETWORKS.filtered, ...listFields(network) };
}

/** The server reads a host with its ports: there is one who knows what is right. */
export function listFields({ allow = [], presets = [] }: NetworkList) {
  const networkRules = allow.map((rule) => {
    if (typeof rule === "string") return { host: rule };
    const { host, ports = [], methods = [], paths = [], addresses = [] } = rule;
    return { host, ports: [...ports], methods: [...methods], paths: [...paths], addresses: [...addresses] };
  });
  return { networkRules, networkPresets: [...presets] };
}

export function networkRuleOf({ host, ports, methods, paths, addresses }: NetworkRuleMessage): NetworkRule {
  return {
    ...{ host, ports, ...(methods.length > 0 && { methods }), ...(paths.length > 0 && { paths }) },
    ...(addresses.length > 0 && { addresses }),
  };
}
