import type { Level, Rule } from "@agentfense/permission";
import type { Random } from "./random.ts";

/** Names of the trees the rules are about; short, and each the beginning or the end of another. */
export const RULED_NAMES = ["a", "b", "ab", "ba", ".a"] as const;

const SEGMENTS = [...RULED_NAMES, "*", "?", "a*", "*b", "[ab]", "{a,ab}", ".*", "**"];
const LEVELS: readonly Level[] = ["none", "none", "view", "read", "write", "write"];

/** A rule set of up to eight rules, usually with something visible in it. */
export function randomRules(random: Random): Rule[] {
  const rules = Array.from({ length: random.between(1, 7) }, () => randomRule(random));
  return random.chance(70) ? [{ pattern: "**/*", permission: random.pick(LEVELS.slice(2)) }, ...rules] : rules;
}

function randomRule(random: Random): Rule {
  const permission = random.pick(LEVELS);
  const priority = random.chance(40) ? { priority: random.pick([-1, 1, 100]) } : {};
  const literal = () => `/${names(random).join("/")}`;
  switch (random.weighted({ glob: 45, anyDepth: 20, file: 10, directory: 10, inferredDirectory: 10, everything: 5 })) {
    case "glob":
      return { pattern: `${random.pick(["", "/"])}${globSegments(random)}`, permission, ...priority };
    case "anyDepth":
      return { pattern: random.pick(SEGMENTS.filter((segment) => segment !== "**")), permission, ...priority };
    case "file":
      return { pattern: literal(), permission, type: "file", ...priority };
    case "directory":
      return { pattern: literal(), permission, type: "directory", ...priority };
    case "inferredDirectory":
      return { pattern: `${literal()}/`, permission, ...priority };
    case "everything":
      return { pattern: "/**", permission, ...priority };
  }
}

function names(random: Random): string[] {
  return Array.from({ length: random.between(1, 3) }, () => random.pick(RULED_NAMES));
}

/** Two or three segments, so that the pattern has a slash and is anchored. */
function globSegments(random: Random): string {
  return Array.from({ length: random.between(2, 3) }, () => random.pick(SEGMENTS)).join("/");
}
