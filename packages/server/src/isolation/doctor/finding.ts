/** The runtimes that really keep something apart. */
export type RealRuntime = "bwrap" | "docker";

/** One line of the doctor's report. */
export interface Finding {
  /** A stable name for programs: "kernel", "user-namespaces". */
  readonly check: string;
  /** `warning`: something is weaker, slower or optional. `failure`: something that is needed does not work. */
  readonly verdict: "ok" | "warning" | "failure";
  /** What is there. */
  readonly summary: string;
  /** What to do about it, in one line; absent when all is well. */
  readonly fix?: string;
  /** The runtimes this check is about; a finding about neither alone names both. */
  readonly concerns: readonly RealRuntime[];
  /** The runtimes that do not work because of this. Empty: they work all the same. */
  readonly blocks: readonly RealRuntime[];
}

const BOTH: readonly RealRuntime[] = ["bwrap", "docker"];

/** The runtimes nothing stands in the way of. */
export function workingRuntimes(findings: readonly Finding[]): RealRuntime[] {
  const blocked = new Set(findings.flatMap(({ blocks }) => blocks));
  return BOTH.filter((runtime) => !blocked.has(runtime));
}

interface Remark {
  readonly fix: string;
  readonly concerns?: readonly RealRuntime[];
  readonly blocks?: readonly RealRuntime[];
}

export function fine(check: string, summary: string, concerns: readonly RealRuntime[] = BOTH): Finding {
  return { check, verdict: "ok", summary, concerns, blocks: [] };
}

export function doubtful(check: string, summary: string, { fix, concerns = BOTH, blocks = [] }: Remark): Finding {
  return { check, verdict: "warning", summary, fix, concerns, blocks };
}

/** A failure blocks what it concerns, unless said otherwise. */
export function broken(check: string, summary: string, { fix, concerns = BOTH, blocks = concerns }: Remark): Finding {
  return { check, verdict: "failure", summary, fix, concerns, blocks };
}
