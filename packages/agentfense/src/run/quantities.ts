import { cpuQuotaOf } from "@agentfense/sdk/project";
import { UsageError } from "../command.ts";

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, "": 1000, s: 1000, m: 60_000, h: 3_600_000 };

/** What a timer can wait for: 24 days. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** `30s`, `500ms`, `10m`, `1.5h`, or plain seconds. */
export function parseDuration(text: string, option: string): number {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const milliseconds = Math.ceil(Number(digits) * UNITS_MS[unit]!);
  if (!(milliseconds > 0 && milliseconds <= LONGEST_TIMEOUT_MS)) {
    throw new UsageError(`${option} takes a time such as 30s, 10m or a number of seconds, not ${JSON.stringify(text)}`);
  }
  return milliseconds;
}

/** `0.5` CPUs as microseconds of CPU time in each 100 ms. */
export function parseCpuQuota(text: string, option: string): number {
  const quota = cpuQuotaOf(text);
  if (quota === undefined) {
    throw new UsageError(`${option} takes a number of CPUs such as 0.5 or 2, not ${JSON.stringify(text)}`);
  }
  return quota;
}

/** Variables as `K=V`, or `K` for the value it has here. */
export function parseEnvironment(
  assignments: readonly string[],
  environment: NodeJS.ProcessEnv,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    assignments.map((assignment) => {
      const equals = assignment.indexOf("=");
      const name = equals < 0 ? assignment : assignment.slice(0, equals);
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        throw new UsageError(`--env takes NAME=VALUE or NAME, not ${JSON.stringify(assignment)}`);
      }
      if (equals >= 0) return [name, assignment.slice(equals + 1)];
      const inherited = environment[name];
      if (inherited === undefined) throw new UsageError(`--env ${name}: there is no such variable here`);
      return [name, inherited];
    }),
  );
}
