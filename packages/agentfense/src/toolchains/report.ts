import type { Finding } from "@agentfense/server/doctor";
import { printable } from "../terminal.ts";
import type { LeftOut } from "./find.ts";
import type { ShownToolchains } from "./workspaces.ts";

/** For one sentence. */
export function describeLeftOut(leftOut: readonly LeftOut[]): string {
  return leftOut.map(({ path, reason }) => `${printable(path)} (${reason})`).join(", ");
}

/** A line of the doctor's report. */
export function toolchainFinding({ shown, leftOut }: ShownToolchains): Finding {
  const about = { check: "toolchains", concerns: ["bwrap"], blocks: [] } as const;
  const places = shown.length === 0 ? "nothing" : shown.map(printable).join(", ");
  const summary = `of PATH outside of /usr, the sandboxes of run, shell and mcp show: ${places}`;
  if (leftOut.length === 0) return { ...about, verdict: "ok", summary };
  return {
    ...about,
    verdict: "warning",
    summary: `${summary}; not ${describeLeftOut(leftOut)}`,
    fix: "take it out of PATH, or install the program in a directory of its own",
  };
}
