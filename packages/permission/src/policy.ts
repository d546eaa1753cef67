import { Automaton, type Scope } from "./automaton.ts";
import { type Explanation, explainPath } from "./explain.ts";
import { pathNames } from "./parse-rules.ts";
import { growTree } from "./pattern-tree.ts";
import { type ResolvedRules, resolveRules } from "./resolve.ts";
import type { Rule, RuleType } from "./rule.ts";

/** A rule set, compiled: a decision costs about the same for one rule and for ten thousand. */
export interface Policy {
  /** The rules it was compiled from, in their order; rule indexes refer to it. */
  readonly rules: readonly Rule[];
  /** The type of each rule, as given or inferred. */
  readonly types: readonly RuleType[];
  /** The root of the workspace, `/`. */
  readonly root: Scope;
  /** Some rule that is not replaced by a later one has level write. */
  readonly grantsWrite: boolean;
  /** The scope of a path such as `/a/b`; throws a `TypeError` for what is not one. */
  decide(path: string): Scope;
  /** Which rules match a path, and why the one that decides does. Costs as much as there are rules. */
  explain(path: string): Explanation;
}

/** Compiles rules, or throws a `RuleError` for the first one that is malformed. No rules at all hide everything. */
export function compileRules(rules: readonly Rule[]): Policy {
  return new CompiledPolicy(resolveRules(rules.map((rule) => Object.freeze({ ...rule }))));
}

class CompiledPolicy implements Policy {
  readonly rules: readonly Rule[];
  readonly types: readonly RuleType[];
  readonly root: Scope;
  readonly grantsWrite: boolean;
  readonly #resolved: ResolvedRules;

  constructor(resolved: ResolvedRules) {
    this.#resolved = resolved;
    this.rules = Object.freeze(resolved.rules.map(({ rule }) => rule));
    this.types = Object.freeze(resolved.rules.map(({ type }) => type));
    this.root = new Automaton(growTree(resolved.contenders), resolved.contenders).root;
    this.grantsWrite = resolved.contenders.some(({ rule }) => rule.rule.permission === "write");
  }

  decide(path: string): Scope {
    let scope = this.root;
    for (const name of pathNames(path)) scope = scope.child(name);
    return scope;
  }

  explain(path: string): Explanation {
    return explainPath(this.#resolved, path);
  }
}
