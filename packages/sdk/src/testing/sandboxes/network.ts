import type { NetworkRule } from "@agentfense/protocol/sandbox";
import { invalid } from "../faults.ts";

/** A line of a filtered network's list, which a mock tells and nothing else: it has no network. */
export type MockNetworkRule = Readonly<Record<"ports", readonly number[]>> &
  Readonly<Record<"methods" | "paths", readonly string[]>> & { readonly host: string };

const USUAL_PORTS = [443, 80];

/** As a server would store them, as far as that needs no knowledge of names: what it refuses may be taken here. */
export function networkRulesOf(rules: readonly NetworkRule[]): readonly MockNetworkRule[] {
  return rules.map(({ host: text, ports, methods, paths }, index) => {
    const [host = "", listed] = text.toLowerCase().split(":");
    if (!/^(\*\.)?[^\s/*:]+\.[^\s/*:]+$/.test(host)) {
      throw invalid(`network_rules[${index}]: ${JSON.stringify(text)} is no full name of a host`, {
        rule: String(index),
      });
    }
    const own = ports.length > 0 ? [...ports] : (listed?.split(",").map(Number) ?? USUAL_PORTS);
    return { host, ports: own, methods: [...methods], paths: [...paths] };
  });
}
