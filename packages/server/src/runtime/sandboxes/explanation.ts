import type { Explanation } from "./api.ts";
import { workspacePath } from "./paths.ts";
import type { Resident } from "./resident.ts";

/** Which rule of the sandbox decides about a path, and which ones lost. */
export function explainPath({ policy }: Resident, path: string): Explanation {
  const { level, reason, candidates, path: normal } = policy.explain(workspacePath(path));
  const told = candidates.map(({ rule, reason: why, lostBy }) => ({
    index: rule,
    rule: policy.rules[rule]!,
    reason: why,
    lost: lostBy !== undefined,
  }));
  const deciding = told.find(({ lost }) => !lost);
  return {
    path: normal,
    permission: level,
    deciding: deciding && { index: deciding.index, rule: deciding.rule, reason: deciding.reason },
    losing: told.filter(({ lost }) => lost).map(({ index, rule, reason: why }) => ({ index, rule, reason: why })),
    text: `${normal} is ${level}: ${reason}`,
  };
}
