import { writeFile } from "node:fs/promises";
import { type Level, lint, type TreeEntry } from "@agentfense/permission";
import { type Change, listChanges } from "@agentfense/server/isolation";
import { CommandFailure } from "../command-failure.ts";
import { print, warn } from "../output.ts";
import { passOn } from "../run/command-output.ts";
import { inSandbox } from "../run/embedded.ts";
import type { SandboxValues } from "../run/options.ts";
import { execOf } from "../run/run.ts";
import { RunDelta } from "../run/run-delta.ts";
import { readSandboxRequest, type SandboxRequest } from "../run/sandbox-request.ts";
import { Interruption } from "../stop-signals.ts";
import { printable } from "../terminal.ts";
import { counted } from "../wording.ts";
import { ContentReader } from "./content-reader.ts";
import { type Observed, type Proposal, type ProposedRule, proposeRules } from "./propose.ts";
import { surveyDirectory } from "./survey.ts";
import type { ViewEntry } from "./workspace-view.ts";

const EVERYTHING = [{ pattern: "**/*", permission: "write" }] as const;

interface LearnCall {
  readonly values: SandboxValues & { readonly record?: string | undefined; readonly json?: boolean | undefined };
  readonly given: readonly [directory: string | undefined];
  readonly command: readonly string[];
}

/** `agentfense policy learn` */
export async function learn(call: LearnCall): Promise<number> {
  const { values, given, command } = call;
  const { request: asked } = await readSandboxRequest({ ...values, policy: false }, given[0]);
  const request: SandboxRequest = { ...asked, rules: EVERYTHING, rulesLabel: "everything" };
  const exec = execOf(command, request);
  using interruption = new Interruption();
  await using delta = await RunDelta.open(request);
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
  if (values.record !== undefined) await writeRecord(values.record, accesses);
  if (exitCode !== 0) warn(`the command ended with ${exitCode}: what it did until then may not be all that it needs`);
  await print(
    values.json ? `${JSON.stringify({ exitCode, ...proposal }, undefined, 2)}\n` : describe(proposal, accesses.size),
  );
  return exitCode;
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
