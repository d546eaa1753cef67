import { IsolationError, invalid } from "../backend/isolation-error.ts";
import { NetworkPolicy, type NetworkRule, parseNetworkRule } from "./policy.ts";
import { NETWORK_PRESETS } from "./presets.ts";

/** What somebody asks for: hosts, as parseNetworkRule takes them, and names of presets. */
export interface NetworkList {
  readonly allow?: readonly unknown[] | undefined;
  readonly presets?: readonly string[] | undefined;
}

/** The rules of a list, those of presets first; refused as a whole when one is malformed. */
export function networkRules({ allow = [], presets = [] }: NetworkList): readonly NetworkRule[] {
  return NetworkPolicy.of([...presets.flatMap(presetRules), ...allow.map(parsed)]).rules;
}

/** What is listened at while a list is learned: the web, ssh and git. */
const LEARNED_PORTS = [443, 80, 22, 9418];

/** A list that lets through what it does not name too, at usual ports and its own, so that what is used can be written down. */
export function learningRules(rules: readonly NetworkRule[]): readonly NetworkRule[] {
  const ports = new Set([...LEARNED_PORTS, ...rules.flatMap((rule) => rule.ports)]);
  return [...rules, { host: "*", ports: [...ports] }];
}

/** As --allow takes it. */
export function ruleText({ host, ports, addresses = [] }: NetworkRule): string {
  return `${host}:${ports.join(",")}${addresses.length === 0 ? "" : `@${addresses.join(",")}`}`;
}

function presetRules(name: string): readonly NetworkRule[] {
  const rules = Object.hasOwn(NETWORK_PRESETS, name) ? NETWORK_PRESETS[name] : undefined;
  if (rules !== undefined) return rules;
  const known = Object.keys(NETWORK_PRESETS).join(", ");
  throw invalid(`there is no network preset ${JSON.stringify(name)}`, `there are ${known}`);
}

/** With its place in the list: a long one is no help otherwise. */
function parsed(rule: unknown, index: number): NetworkRule {
  try {
    return parseNetworkRule(rule);
  } catch (error) {
    if (!(error instanceof IsolationError)) throw error;
    throw invalid(`host ${index + 1} of the network's list: ${error.message}`, error.hint);
  }
}
