import type { Finding, RealRuntime } from "@agentfense/server/doctor";
import { type Paint, printableSentence } from "../terminal.ts";

const MARKS = {
  ok: { sign: "✓", style: "good" },
  warning: { sign: "!", style: "doubtful" },
  failure: { sign: "✗", style: "bad" },
} as const;

/** One line per finding, with the fix behind it, and a last line with what works. */
export function describeFindings(findings: readonly Finding[], working: readonly RealRuntime[], paint: Paint): string {
  const lines = findings.map(({ verdict, summary, fix }) => {
    const { sign, style } = MARKS[verdict];
    const remedy = fix === undefined ? "" : paint("faint", `  → ${printableSentence(fix)}`);
    return `${paint(style, sign)} ${printableSentence(summary)}${remedy}`;
  });
  const conclusion = working.length === 0 ? "no runtime works here" : `works here: ${working.join(", ")}`;
  return `${lines.join("\n")}\n${conclusion}\n`;
}
