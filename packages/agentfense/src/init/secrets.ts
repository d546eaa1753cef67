import { compileRules, getPreset, type LintFinding, lint, type Rule, type TreeEntry } from "@agentfense/permission";

/** Things that look like secrets for one reason, and the rules that hide them. */
export interface SecretGroup {
  /** For people: `looks like a secret`. */
  readonly reason: string;
  /** A few of them, for people. */
  readonly examples: readonly string[];
  readonly count: number;
  readonly rules: readonly Rule[];
}

/** More of one kind are hidden by one pattern. */
const MOST_NAMED = 5;
/** As the presets have it for secrets, and above them for a pattern that a preset has too. */
const PRIORITY = 100;

/** Everything that looks like a secret to `lint`, grouped by what gives it away: its name, or what `textOf` finds in it. */
export function findSecrets<Entry extends TreeEntry>(
  entries: readonly Entry[],
  textOf?: (entry: Entry) => string | undefined,
): SecretGroup[] {
  const everything: Rule = { pattern: "**/*", permission: "read" };
  const findings = lint([everything], entries, textOf);
  const paths = findings.flatMap((finding) => (finding.kind === "secret-visible" ? [finding.path] : []));
  const safe = compileRules(getPreset("agent-safe"));
  const groups = Map.groupBy(paths, (path) => givingAway(path, safe.rules[safe.decide(path).rule]?.pattern));
  const named = [...groups].map(([pattern, same]) => ({
    reason: "looks like a secret",
    examples: same.slice(0, 3),
    count: same.length,
    rules:
      same.length <= MOST_NAMED && same.every(isPlain)
        ? same.map((path) => ({ pattern: path, permission: "none", type: "file", priority: PRIORITY }))
        : [{ pattern, permission: "none", priority: PRIORITY + 1 }],
  })) satisfies SecretGroup[];
  return [...named, ...secretsInside(findings)];
}

/** Files that hold keys, each hidden as a whole: it is for people to move the key elsewhere and show the file again. */
function secretsInside(findings: readonly LintFinding[]): SecretGroup[] {
  const seen = new Set<string>();
  return findings.flatMap((finding): SecretGroup[] => {
    if (finding.kind !== "secret-inside" || !isPlain(finding.path) || seen.has(finding.path)) return [];
    const { path, line, secret } = finding;
    seen.add(path);
    const rules: readonly Rule[] = [{ pattern: path, permission: "none", type: "file", priority: PRIORITY }];
    return [{ reason: `line ${line} holds what looks like a secret (${secret})`, examples: [path], count: 1, rules }];
  });
}

/** Of a repository only these can hold a token; the rest of it is for the preset to decide. */
function givingAway(path: string, pattern: string | undefined): string {
  return pattern === undefined || pattern === "**/.git/**"
    ? `**/.git/${path.slice(path.lastIndexOf("/") + 1)}`
    : pattern;
}

/** It can stand in a rule, and in front of people, as it is. */
function isPlain(path: string): boolean {
  return /^[\w./@+ ~=,-]+$/.test(path);
}
