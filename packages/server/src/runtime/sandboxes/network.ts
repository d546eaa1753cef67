import { type NetworkList, networkRules, ruleText } from "../../isolation/network/list.ts";
import { NetworkPolicy, type NetworkRule, parseNetworkRule, reachesPrivate } from "../../isolation/network/policy.ts";
import { RuntimeError } from "../runtime-error.ts";
import { toRuntimeError } from "./refusals.ts";

/** Whether it is one as people write it. */
export function isNetworkRule(text: unknown): text is string {
  try {
    return typeof text === "string" && parseNetworkRule(text).ports.length > 0;
  } catch {
    return false;
  }
}

/** What callers may list at most; nothing where a program asks its own engine. */
export type NetworkCap = readonly NetworkRule[] | undefined;

/** The rules of a filtered network as they are stored. Refused when they are malformed, or beyond what the operator's list covers. */
export function storedNetworkRules(list: NetworkList, cap: NetworkCap): readonly NetworkRule[] {
  let rules: readonly NetworkRule[];
  try {
    rules = networkRules(list);
  } catch (error) {
    throw toRuntimeError(error);
  }
  requireWithin(rules, cap);
  return rules;
}

/** An empty cap covers every host, at public addresses: the operator's networks are the operator's to list. */
export function requireWithin(rules: readonly NetworkRule[], cap: NetworkCap): void {
  if (cap === undefined) return;
  const [beyond] =
    cap.length === 0 ? rules.filter(reachesPrivate) : NetworkPolicy.of(rules).cappedBy(NetworkPolicy.of(cap));
  if (beyond === undefined) return;
  const rule = ruleText(beyond);
  throw new RuntimeError("LIMIT_EXCEEDED", `${rule} is not among the hosts that sandboxes of this server may reach`, {
    details: { rule, allowed: cap.map(ruleText).join(" ") },
    hint: "ask for less, or add it to runtime.network_allow in the server's configuration",
  });
}
