import { compileRules, LEVEL } from "@agentfense/permission";
import { textOf } from "../filesystem/names.ts";

/**
 * How what both sides changed is merged.
 *
 *   text     line by line
 *   json     the same, and a conflict where the result would not be JSON any more
 *   union    line by line; where both changed, the lines of both stand one after the other
 *   whole    not at all: it is one side's, or a conflict
 *   ours     the target's, or that of the first side to change it
 *   theirs   that of the last side to change it
 */
export const DRIVERS = ["text", "json", "union", "whole", "ours", "theirs"] as const;

export type Driver = (typeof DRIVERS)[number];

/** A pattern of the rule language, and the driver of what it matches. */
export interface DriverRule {
  readonly pattern: string;
  readonly driver: Driver;
}

/** What a tool computes is its own again only when the tool has made it anew. */
const USUAL: readonly DriverRule[] = [
  { pattern: "*.json", driver: "json" },
  ...[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "deno.lock",
    "Cargo.lock",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "Pipfile.lock",
    "Gemfile.lock",
    "composer.lock",
    "flake.lock",
    "go.sum",
  ].map((pattern) => ({ pattern, driver: "whole" as const })),
];

/** The driver of each path. The last pattern that matches decides; those that are given stand behind the usual ones. */
export function driversFor(given: readonly DriverRule[]): (path: string) => Driver {
  const all = [...USUAL, ...given];
  const policy = compileRules(
    all.map(({ pattern }, priority) => ({ pattern, permission: "write", type: "glob", priority })),
  );
  return (path) => {
    const { level, rule } = policy.decide(`/${textOf(path)}`);
    return level === LEVEL.none ? "text" : (all[rule]?.driver ?? "text");
  };
}
