import { compileRules, LEVEL, type Rule, type Scope } from "@agentfense/permission";

/** What a project's policy is called. The next run in its directory, wherever that is in this codebase, goes by it. */
const POLICY_FILE = ".agentfense.yaml";

/**
 * The rules by which changes leave a delta: those of the sandbox, but no policy is ever written, replaced or removed, at any
 * depth. What the rules hide stays hidden. Inside, an agent may do with its own copy what its rules let it.
 */
export function leavingRules(rules: readonly Rule[]): Scope {
  return withoutPolicies(compileRules(rules).root);
}

function withoutPolicies(scope: Scope, isPolicy = false): Scope {
  return {
    level: isPolicy && scope.level > LEVEL.read ? LEVEL.read : scope.level,
    rule: scope.rule,
    mayShowBelow: scope.mayShowBelow,
    mayHideBelow: scope.mayHideBelow,
    uniform: scope.uniform && scope.level <= LEVEL.read,
    child: (name) => withoutPolicies(scope.child(name), name === POLICY_FILE),
  };
}
