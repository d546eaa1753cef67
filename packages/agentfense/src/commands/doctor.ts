import { examineHost, type RealRuntime, workingRuntimes } from "@agentfense/server/doctor";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { describeFindings } from "../doctor/report.ts";
import { print } from "../output.ts";
import { paintFor } from "../terminal.ts";
import { toolchainFinding } from "../toolchains/report.ts";
import { toolchainsFor } from "../toolchains/workspaces.ts";

const HELP = `Usage: agentfense doctor [OPTIONS]

Looks at what this machine has for running sandboxes, one line a check: ✓ all is well, ! weaker, slower or optional,
✗ needed and missing; behind the arrow, how to fix it. Changes nothing. Run it as the user who will run sandboxes.

  --runtime NAME    only what bwrap or docker needs
  --json            one JSON object instead: { working, findings: [{ check, verdict, summary, fix, concerns, blocks }] }
  -h, --help        this text

Exit codes: 0 when bwrap or docker works (with --runtime: that one), 1 when not.
`;

const OPTIONS = { runtime: { type: "string" }, json: { type: "boolean" } } as const;

export const doctor: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  if (positionals.length > 0) throw new UsageError("doctor takes no arguments");
  const asked = chosenRuntimes(values.runtime);
  const all = [...(await examineHost()), toolchainFinding(await toolchainsFor(process.cwd()))];
  const findings = all.filter(({ concerns }) => concerns.some((runtime) => asked.includes(runtime)));
  const working = workingRuntimes(all).filter((runtime) => asked.includes(runtime));
  await print(
    values.json
      ? `${JSON.stringify({ working, findings }, undefined, 2)}\n`
      : describeFindings(findings, working, paintFor(process.stdout, process.env)),
  );
  return working.length > 0 ? 0 : 1;
}

function chosenRuntimes(name: string | undefined): readonly RealRuntime[] {
  if (name === undefined) return ["bwrap", "docker"];
  if (name === "bwrap" || name === "docker") return [name];
  throw new UsageError(`--runtime is bwrap or docker, not ${JSON.stringify(name)}`);
}
