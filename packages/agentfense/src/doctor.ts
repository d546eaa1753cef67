import { examineHost, type Finding, type RealRuntime, workingRuntimes } from "@agentfense/server/doctor";
import { print } from "./output.ts";
import type { SettingValues } from "./serve/configuration.ts";
import { type Paint, paintFor, printable, printableSentence } from "./terminal.ts";
import { describeLeftOut, type ShownToolchains, toolchainsFor } from "./toolchains/workspaces.ts";

/** `agentfense doctor` */
export async function doctor(
  values: Pick<SettingValues, "config" | "set"> & {
    readonly runtime?: RealRuntime | undefined;
    readonly json?: boolean | undefined;
  },
): Promise<number> {
  const asked: readonly RealRuntime[] = values.runtime === undefined ? ["bwrap", "docker"] : [values.runtime];
  const database = await databaseFinding(values);
  const all = [...(await examineHost()), toolchainFinding(await toolchainsFor(process.cwd())), ...database];
  const findings = all.filter(({ concerns }) => concerns.some((runtime) => asked.includes(runtime)));
  const working = workingRuntimes(all).filter((runtime) => asked.includes(runtime));
  await print(
    values.json
      ? `${JSON.stringify({ working, findings }, undefined, 2)}\n`
      : describeFindings(findings, working, paintFor(process.stdout, process.env)),
  );
  return working.length > 0 && database.every(({ verdict }) => verdict === "ok") ? 0 : 1;
}

/** About the database elsewhere that the configuration names, if it does. No sandbox of `run` needs it. */
async function databaseFinding(values: Pick<SettingValues, "config" | "set">): Promise<Finding[]> {
  const { AGENTFENSE_CONFIG: file, AGENTFENSE_STORAGE_DATABASE: url } = process.env;
  if (!(values.config ?? values.set ?? (file || url))) return [];
  const { readConfiguration } = await import("./serve/configuration.ts");
  const { config } = await readConfiguration({ config: values.config, set: values.set }, process.env);
  const { examineStore } = await import("@agentfense/server/runtime");
  const about = { check: "database", concerns: ["bwrap", "docker"], blocks: [] } as const;
  try {
    const summary = await examineStore(config.storage);
    return summary === undefined ? [] : [{ ...about, verdict: "ok", summary }];
  } catch (error) {
    const { message: summary, hint = "correct the setting, or start the database" } = error as Error & {
      hint?: string;
    };
    return [{ ...about, verdict: "failure", summary, fix: hint }];
  }
}

const MARKS = {
  ok: { sign: "✓", style: "good" },
  warning: { sign: "!", style: "doubtful" },
  failure: { sign: "✗", style: "bad" },
} as const;

/** One line per finding, with the fix behind it, and a last line with what works. */
function describeFindings(findings: readonly Finding[], working: readonly RealRuntime[], paint: Paint): string {
  const lines = findings.map(({ verdict, summary, fix }) => {
    const { sign, style } = MARKS[verdict];
    const remedy = fix === undefined ? "" : paint("faint", `  → ${printableSentence(fix)}`);
    return `${paint(style, sign)} ${printableSentence(summary)}${remedy}`;
  });
  const conclusion = working.length === 0 ? "no runtime works here" : `works here: ${working.join(", ")}`;
  return `${lines.join("\n")}\n${conclusion}\n`;
}

/** A line of the doctor's report. */
function toolchainFinding({ shown, leftOut }: ShownToolchains): Finding {
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
