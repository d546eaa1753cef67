import type { LintFinding } from "@agentfense/permission";
import { type Paint, printableSentence } from "../terminal.ts";

/** What makes rules fail the check. */
export function isReadableSecret({ kind, severity }: LintFinding): boolean {
  return (kind === "secret-visible" || kind === "secret-inside") && severity === "warning";
}

/** One line a finding, warnings only unless all are wanted, and a last line with their number. */
export function describeFindings(
  findings: readonly LintFinding[],
  { all, paint, seeAll = "--all" }: { readonly all: boolean; readonly paint: Paint; readonly seeAll?: string },
): string {
  const shown = all ? findings : findings.filter(({ severity }) => severity === "warning");
  const lines = shown.map(({ severity, kind, message }) => {
    const label = `${severity === "warning" ? "warning" : "remark"}: ${kind}`;
    return `${paint(severity === "warning" ? "doubtful" : "faint", label)}: ${printableSentence(message)}\n`;
  });
  const hidden = findings.length - shown.length;
  const count = shown.length === 0 ? "nothing wrong" : `${shown.length} found`;
  return `${lines.join("")}${count}${hidden === 0 ? "" : `; ${hidden} remarks with ${seeAll}`}\n`;
}
