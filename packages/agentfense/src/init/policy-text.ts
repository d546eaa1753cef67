import { compileRules, getPreset, LEVEL, listPresets, type Rule } from "@agentfense/permission";
import { POLICY_FILE } from "@agentfense/sdk/project";
import { printable } from "../terminal.ts";
import { counted } from "../wording.ts";
import type { Outputs, SecretGroup } from "./findings.ts";
import type { Section } from "./purposes.ts";

/** What was found in a project. */
export interface Findings {
  readonly outputs: readonly Outputs[];
  readonly secrets: readonly SecretGroup[];
  /** What the purpose asks for besides its preset. */
  readonly sections?: readonly Section[];
}

/** The text of a policy for it, with comments for who reads and changes it. */
export function policyText(preset: string, { outputs, secrets, sections: wanted = [] }: Findings): string {
  const sections = [
    ...wanted.map(({ comment, rules }) => [`  # ${comment}`, ...rules.map(ruleLine)].join("\n")),
    ...outputs.map((found) => outputSection(found, preset)),
    ...secrets.map(secretSection),
  ];
  const rules = sections.filter((section) => section !== "").join("\n");
  return `# What a sandbox of AgentFense sees of this project and may do with it. Used by agentfense run, shell, mount and policy,
# and by Sandbox.fromLocal; --no-policy leaves it aside. The sandbox itself can never write this file.
#   what an agent would see:  agentfense policy tree --all .
#   what looks wrong:         agentfense policy lint .
version: 1

# The rules to begin with: ${listPresets()
    .map(({ name }) => name)
    .join(", ")}.
preset: ${preset}

# Rules besides those: none (does not exist), view (only listed), read, write. The more specific one wins, a higher
# priority wins over that. A pattern with a / in it begins at the top of the project.
permissions:${rules === "" ? ` []\n# - { pattern: "/docs/**", permission: write }` : `\n${rules}`}

# More that can be said here; the command line wins over it.
# runtime: bwrap                 # or docker
# resources: { memory: 2g, cpus: 2, pids: 512, disk: 5g }
# env: { CI: "1" }
# ignore: ["*.log"]              # left out of uploads to a server, as in .gitignore
`;
}

/** For messages: what the file is about. */
export function summaryOf(preset: string, { outputs, secrets }: Findings): string {
  const systems = outputs.map(({ system }) => system);
  const hidden = secrets.reduce((sum, { count }) => sum + count, 0);
  const found = [`preset ${preset}`, ...systems, ...(hidden > 0 ? [`${counted(hidden, "secret")} hidden`] : [])];
  return `${POLICY_FILE}: ${found.join(", ")}`;
}

function outputSection({ system, patterns }: Outputs, preset: string): string {
  const policy = compileRules(getPreset(preset));
  const lacking = patterns.filter((pattern) => policy.decide(insideOf(pattern)).level < LEVEL.write);
  if (lacking.length === 0) return "";
  return [
    `  # ${system}: what builds and tests write`,
    ...lacking.map((pattern) => ruleLine({ pattern, permission: "write" })),
  ].join("\n");
}

/** A path that the pattern of a directory matches. */
function insideOf(pattern: string): string {
  return pattern.replace(/^\*\*\//, "/").replace(/\*\*$/, "file");
}

function secretSection({ reason, examples, count, rules }: SecretGroup): string {
  const named =
    rules.length < count ? `: ${examples.map(printable).join(", ")}${count > examples.length ? " …" : ""}` : "";
  return [`  # ${reason}${named}`, ...rules.map(ruleLine)].join("\n");
}

function ruleLine({ pattern, permission, type, priority }: Rule): string {
  const fields = [
    `pattern: ${JSON.stringify(pattern)}`,
    `permission: ${permission}`,
    ...(type === undefined ? [] : [`type: ${type}`]),
    ...(priority === undefined ? [] : [`priority: ${priority}`]),
  ];
  return `  - { ${fields.join(", ")} }`;
}
