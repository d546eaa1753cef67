import { compileRules, type Policy, type Rule } from "@agentfense/permission";
import { median } from "./sample.ts";
import { randomNumbers } from "./seed.ts";

/** What one decision costs with a given number of rules. */
export interface RuleCost {
  readonly rules: number;
  readonly compileMs: number;
  /** Per path of five segments, when the policy sees it for the first time. */
  readonly firstNs: number;
  /** The same path again. */
  readonly againNs: number;
}

const PATHS = 2_000;

export function measureRules(maxRules: number, runs: number): RuleCost[] {
  // So that the first row does not pay for the compiler of the engine.
  costOf(100, runs);
  const costs: RuleCost[] = [];
  for (let rules = 1; rules <= maxRules; rules *= 10) costs.push(costOf(rules, runs));
  return costs;
}

function costOf(count: number, runs: number): RuleCost {
  const rules = someRules(count);
  const paths = somePaths();
  const samples = Array.from({ length: runs }, () => {
    const compile = timed(() => compileRules(rules));
    const first = timed(() => decideAll(compile.result, paths));
    const again = timed(() => decideAll(compile.result, paths));
    if (first.result !== again.result) throw new Error("the same paths got different levels the second time");
    checkSome(compile.result, paths);
    return { compileMs: compile.ms, firstNs: (first.ms * 1e6) / PATHS, againNs: (again.ms * 1e6) / PATHS };
  });
  return {
    rules: count,
    compileMs: median(samples.map(({ compileMs }) => compileMs)),
    firstNs: median(samples.map(({ firstNs }) => firstNs)),
    againNs: median(samples.map(({ againNs }) => againNs)),
  };
}

/** The way a mount decides: one segment at a time from the root. The sum of the levels is the check. */
function decideAll(policy: Policy, paths: readonly (readonly string[])[]): number {
  let sum = 0;
  for (const segments of paths) {
    let scope = policy.root;
    for (const name of segments) scope = scope.child(name);
    sum += scope.level;
  }
  return sum;
}

function checkSome(policy: Policy, paths: readonly (readonly string[])[]): void {
  for (const segments of paths.slice(0, 20)) {
    const walked = decideAll(policy, [segments]);
    const decided = policy.decide(`/${segments.join("/")}`).level;
    if (walked !== decided) throw new Error(`walking gives level ${walked}, decide() gives ${decided}`);
  }
}

/** One that allows everything and then files, directories and globs in equal parts. */
function someRules(count: number): Rule[] {
  const kinds: ((i: number) => Rule)[] = [
    (i) => ({ pattern: `/src/mod${i % 100}/part/secret${i}.txt`, permission: "none" }),
    (i) => ({ pattern: `/src/mod${i}/private/`, permission: "view" }),
    (i) => ({ pattern: `**/*.ext${i}`, permission: "none" }),
    (i) => ({ pattern: `/docs/**/generated${i}/**`, permission: "read" }),
  ];
  const others = Array.from({ length: count - 1 }, (_, i) => kinds[i % kinds.length]!(i));
  return [{ pattern: "**/*", permission: "write" }, ...others];
}

/** The same paths for any number of rules; some meet a rule in each of their segments. */
function somePaths(): string[][] {
  const random = randomNumbers(PATHS);
  const any = (limit: number) => Math.floor(random() * limit);
  return Array.from({ length: PATHS }, (_, i) => [
    random() < 0.5 ? "src" : "docs",
    `mod${any(40)}`,
    ["part", "private", `generated${any(40)}`][any(3)]!,
    `directory${any(50)}`,
    `file${i}.ext${any(40)}`,
  ]);
}

function timed<T>(work: () => T): { result: T; ms: number } {
  const start = performance.now();
  const result = work();
  return { result, ms: performance.now() - start };
}
