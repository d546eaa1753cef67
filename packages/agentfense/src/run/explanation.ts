import { ruleText } from "@agentfense/server/isolation";
import { printable } from "../terminal.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/** What a sandbox would be, for people, or as one JSON object. Nothing was made for it. */
export function explainRequest(request: SandboxRequest, { json }: { readonly json: boolean }): string {
  const { directory, rulesLabel: rules, runtime, spec, toolchains } = request;
  const { shown = [], leftOut = [], env: own = {} } = toolchains ?? {};
  const env = { ...own, ...spec.env };
  const readOnlyPaths = [...shown, ...(spec.readOnlyPaths ?? [])];
  const network = spec.network ?? "none";
  const hosts = (spec.networkRules ?? []).map(ruleText);
  const limits = request.limits;
  const changes = whatBecomesOfChanges(request);
  if (json) {
    const answer = { directory, rules, runtime, network, hosts, limits, readOnlyPaths, env, leftOut, changes };
    return `${JSON.stringify(answer, undefined, 2)}\n`;
  }
  const lines: (readonly [name: string, value: string])[] = [
    ["workspace", `${printable(directory)} at /workspace, by the rules of ${rules}`],
    ["runtime", `${runtime}, network ${network}`],
    ...hosts.map((host) => ["allowed", host] as const),
    ...Object.entries(limits).map(([name, value]) => ["limit", `${name} ${value}`] as const),
    ...readOnlyPaths.map((path) => ["shown", `${printable(path)}, read-only`] as const),
    ...leftOut.map(({ path, reason }) => ["left out", `${printable(path)}: ${reason}`] as const),
    ...Object.entries(env).map(([name, value]) => ["variable", `${name}=${printable(value)}`] as const),
    ["changes", changes],
  ];
  return lines.map(([name, value]) => `${name.padEnd(10)}${value}\n`).join("");
}

function whatBecomesOfChanges({ apply, keptDelta }: SandboxRequest): string {
  const kept = keptDelta === undefined ? "thrown away" : `kept in ${printable(keptDelta)}`;
  if (apply === "never") return kept;
  return apply === "always" ? "written back" : `written back when the command succeeds, else ${kept}`;
}
