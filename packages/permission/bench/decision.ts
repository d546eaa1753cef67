/**
 * What one decision costs, by number and kind of rules: `node packages/permission/bench/decision.ts`.
 * A decision is one `child()`; names come from a fixed list that hits some rules and misses most.
 */
import { pathToFileURL } from "node:url";
import { compileRules, getPreset, type Rule, type Scope } from "../src/index.ts";

const COUNTS = [1, 10, 100, 1_000, 10_000];
const PATHS = 2_000;
const MIN_NS = 200_000_000;

const KINDS: Record<string, (i: number) => Rule> = {
  "anchored paths": (i) => ({ pattern: `/src/dir${i % 50}/file${i}.ts`, permission: "write" }),
  "names at any depth": (i) => ({ pattern: `**/name${i}`, permission: "none", priority: 1 }),
  suffixes: (i) => ({ pattern: `*.x${i}`, permission: "none", priority: 1 }),
  prefixes: (i) => ({ pattern: `pre${i}-*`, permission: "none", priority: 1 }),
  directories: (i) => ({ pattern: `/src/dir${i}/`, permission: "write" }),
  "two wildcards": (i) => ({ pattern: `**/lib${i}/**/*.o`, permission: "view" }),
  mixed: (i) => Object.values(KINDS)[i % 6]!(i),
};

interface Measurement {
  readonly kind: string;
  readonly rules: number;
  readonly nsPerDecision: number;
}

/** Measures every kind at every count. */
export function measureDecisions(minNs = MIN_NS): Measurement[] {
  const measurements: Measurement[] = [];
  for (const [kind, rule] of Object.entries(KINDS)) {
    for (const count of COUNTS) {
      const rules: Rule[] = [{ pattern: "**/*", permission: "read" }];
      for (let i = 0; i < count - 1; i++) rules.push(rule(i));
      measurements.push({ kind, rules: count, nsPerDecision: nsPerDecision(compileRules(rules).root, minNs) });
    }
  }
  const preset = getPreset("agent-safe");
  measurements.push({
    kind: "preset agent-safe",
    rules: preset.length,
    nsPerDecision: nsPerDecision(compileRules(preset).root, minNs),
  });
  return measurements;
}

function nsPerDecision(root: Scope, minNs: number): number {
  const paths = Array.from({ length: PATHS }, (_, i) => namesOfPath(i));
  const decisions = paths.reduce((sum, names) => sum + names.length, 0);
  let checksum = 0;
  const once = () => {
    for (const names of paths) {
      let scope = root;
      for (let i = 0; i < names.length; i++) scope = scope.child(names[i]!);
      checksum += scope.level;
    }
  };
  for (let i = 0; i < 5; i++) once();
  let rounds = 0;
  const start = process.hrtime.bigint();
  let elapsed = 0;
  while (elapsed < minNs) {
    once();
    rounds++;
    elapsed = Number(process.hrtime.bigint() - start);
  }
  if (checksum < 0) throw new Error("unreachable: levels are not negative");
  return elapsed / (rounds * decisions);
}

/** Paths as in a source tree: most names match no rule but the first. */
function namesOfPath(i: number): string[] {
  const directory = `dir${i % 50}`;
  switch (i % 8) {
    case 0:
      return ["src", directory, `file${i}.ts`];
    case 1:
      return ["src", directory, `name${i}`];
    case 2:
      return ["docs", `page${i}.x${i % 100}`];
    case 3:
      return ["docs", `pre${i % 100}-page.md`];
    case 4:
      return ["packages", `lib${i % 100}`, "build", `object${i}.o`];
    case 5:
      return ["packages", `package${i}`, "README.md"];
    default:
      return ["node_modules", `module${i}`, "dist", "index.js"];
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const table = new Map<string, Record<string, string>>();
  for (const { kind, rules, nsPerDecision: ns } of measureDecisions()) {
    const row = table.get(kind) ?? {};
    row[`${rules} rules`] = `${ns.toFixed(0)} ns`;
    table.set(kind, row);
  }
  for (const [kind, row] of table) {
    console.log(kind.padEnd(20), ...Object.entries(row).map(([rules, ns]) => `${rules}: ${ns}`.padStart(22)));
  }
}
