import { writeFile } from "node:fs/promises";
import { type Level, lint, type TreeEntry } from "@agentfense/permission";
import { type Change, type ExecRequest, listChanges } from "@agentfense/server/isolation";
import { counted } from "../changes/table.ts";
import { type Command, CommandFailure, UsageError } from "../command.ts";
import { surveyDirectory } from "../init/survey.ts";
import { print, warn } from "../output.ts";
import { ContentReader } from "../policy/content-reader.ts";
import { type Observed, type Proposal, type ProposedRule, proposeRules } from "../policy/propose.ts";
import type { ViewEntry } from "../policy/workspace-view.ts";
import { DeltaPlace } from "../run/delta-place.ts";
import { inSandbox } from "../run/embedded.ts";
import { Interruption } from "../run/interruption.ts";
import { readSandboxRequest, type SandboxRequest } from "../run/sandbox-request.ts";
import { inputToPassOn, passOn } from "../run/streaming.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense policy learn [OPTIONS] [DIR] -- COMMAND [ARGUMENT…]

Runs COMMAND in a sandbox that sees all of DIR (default: where you are), secrets too, and may change all of its copy; what it
changes is thrown away. Then prints the least rules under which it would have worked, as YAML with the reasons: for run,
mount and policy as --rules FILE, or for permissions: in .agentfense.yaml. Many paths of a directory become one pattern. What
looks like a secret is named, not allowed, and hidden where a pattern would show it. COMMAND's own output goes to stderr.

  agentfense policy learn -- npm test > rules.yaml

  --record FILE     write what was looked at, read and written here, for policy simulate: one { path, level } a line
  --network[=MODE]  none (default), private or host
  --env NAME=VALUE  a variable for the command (may be repeated); NAME alone passes on the one here
  --home DIR        keep the home (~) in this directory of yours
  --runtime NAME    bwrap (default) or docker
  --image NAME      docker: the image
  --toolchains WHICH  bwrap: auto (default) shows the programs that your PATH finds outside of /usr; off shows none
  --json            { exitCode, rules, secrets } instead of the YAML
  -h, --help        this text

Exit codes: that of the command; 125 when it could not be run; 2 when this command was given wrongly.
`;

export const policyLearn: Command = { help: HELP, run };

const EVERYTHING = [{ pattern: "**/*", permission: "write" }] as const;

async function run(args: readonly string[]): Promise<number> {
  const { request, exec, record, json } = await readRequest(args);
  using interruption = new Interruption();
  await using delta = await DeltaPlace.open(request);
  const { entries, complete } = surveyDirectory(request.directory);
  if (!complete) warn(`only the first ${entries.length} entries of ${printable(request.directory)} were looked at`);
  const accesses = new Map<string, Exclude<Level, "none">>();
  const { exitCode } = await inSandbox(
    request,
    delta.path,
    interruption,
    (sandbox) =>
      passOn(
        sandbox.execStream(exec, { signal: interruption.signal }),
        { stdout: process.stderr, stderr: process.stderr },
        interruption.signal,
      ),
    // A path is told once for each level, lowest first.
    ({ path, level }) => accesses.set(path, level),
  );
  interruption.signal.throwIfAborted();
  const changes = await Array.fromAsync(
    listChanges({ delta: delta.path, lowers: [request.directory], rules: EVERYTHING, tellsAll: true }),
  );
  const proposal = proposeRules(observedIn(accesses, entries, changes));
  if (record !== undefined) await writeRecord(record, accesses);
  if (exitCode !== 0) warn(`the command ended with ${exitCode}: what it did until then may not be all that it needs`);
  await print(
    json ? `${JSON.stringify({ exitCode, ...proposal }, undefined, 2)}\n` : describe(proposal, accesses.size),
  );
  return exitCode;
}

async function readRequest(args: readonly string[]) {
  const separator = args.indexOf("--");
  const [first, ...rest] = separator < 0 ? [] : args.slice(separator + 1);
  if (first === undefined || first === "") {
    throw new UsageError("policy learn takes a command after --, as in: agentfense policy learn -- npm test");
  }
  const { request, values } = await readSandboxRequest("policy learn", ["--no-policy", ...args.slice(0, separator)], {
    record: { type: "string" },
    json: { type: "boolean" },
  });
  const own = values as { preset?: string; rules?: string; record?: string; json?: boolean };
  const unfit = [
    ...(own.preset === undefined && own.rules === undefined ? [] : ["--preset and --rules"]),
    ...(request.keptDelta === undefined ? [] : ["--delta"]),
    ...(request.apply === "never" ? [] : ["--apply"]),
  ];
  if (unfit.length > 0) throw new UsageError(`policy learn shows everything and keeps nothing: no ${unfit.join(", ")}`);
  const input = inputToPassOn();
  const exec: ExecRequest = {
    command: rest.length === 0 ? first : [first, ...rest],
    ...(input === undefined ? {} : { stdin: input }),
    ...(request.workdir === undefined ? {} : { workdir: request.workdir }),
  };
  const open: SandboxRequest = { ...request, rules: EVERYTHING, rulesLabel: "everything" };
  return { request: open, exec, record: own.record, json: own.json === true };
}

function observedIn(
  accesses: Observed["accesses"],
  entries: readonly ViewEntry[],
  changes: readonly Change[],
): Observed {
  const added = changes.filter(({ kind }) => kind === "added");
  const reader = new ContentReader();
  const isRead = (path: string): boolean => (accesses.get(path) ?? "view") !== "view";
  const textOf = (entry: TreeEntry | ViewEntry): string | undefined =>
    "location" in entry && isRead(entry.path) ? reader.textOf(entry) : undefined;
  const found = lint([{ pattern: "**/*", permission: "read" }], [...entries, ...added], textOf);
  const reasons = new Map<string, string>();
  for (const finding of found) {
    if (finding.kind === "secret-visible") reasons.set(finding.path, "looks like a secret");
    if (finding.kind === "secret-inside") {
      reasons.set(finding.path, `line ${finding.line} holds what looks like a secret (${finding.secret})`);
    }
  }
  return {
    accesses,
    files: new Set([...entries, ...added].filter(({ type }) => type !== "directory").map(({ path }) => path)),
    madeDirectories: new Set(added.filter(({ type }) => type === "directory").map(({ path }) => path)),
    secretAt: (path) => reasons.get(path),
  };
}

async function writeRecord(file: string, accesses: Observed["accesses"]): Promise<void> {
  const lines = [...accesses].map(([path, level]) => `${JSON.stringify({ path, level })}\n`);
  await writeFile(file, lines.join("")).catch((error: NodeJS.ErrnoException) => {
    throw new CommandFailure(`${printable(file)} cannot be written (${error.code ?? error.message})`);
  });
}

function describe({ rules, secrets }: Proposal, paths: number): string {
  const head = [`# The least rules for a command that used ${counted(paths, "path")}.`];
  const refused = secrets.flatMap(({ path, level, reason }) => [
    `# Not allowed: ${printable(path)} (${level === "write" ? "written" : "read"}); ${reason}. If the command needs it:`,
    `# - ${line({ pattern: path, permission: level, priority: 200 })}`,
  ]);
  const lines = rules.flatMap((rule) => [`# ${printable(rule.reason)}`, `- ${line(rule)}`]);
  return `${[...head, ...refused, ...(lines.length === 0 ? ["[]"] : lines)].join("\n")}\n`;
}

function line({ pattern, permission, priority }: Omit<ProposedRule, "reason">): string {
  const fields = [`pattern: ${JSON.stringify(pattern)}`, `permission: ${permission}`];
  return `{ ${[...fields, ...(priority === undefined ? [] : [`priority: ${priority}`])].join(", ")} }`;
}
