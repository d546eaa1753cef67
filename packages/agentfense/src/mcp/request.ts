import { resolve } from "node:path";
import type { McpApproval } from "@agentfense/agent/mcp";
import { UsageError } from "../command.ts";
import { ALLOW_HELP } from "../network-option.ts";
import { RULES_HELP } from "../rules-option.ts";
import { readSandboxRequest, type SandboxRequest } from "../run/sandbox-request.ts";
import { type HttpPlace, readPlace } from "./place.ts";

export const MCP_HELP = `Usage: agentfense mcp [OPTIONS] [DIR]

An MCP server for an agent such as Claude Code or Cursor: run_code, shell, read_file, write_file, edit_file, list_files and
search, in a sandbox that sees DIR (default: where you are) at /workspace as the rules allow. The changes and the audit trail
are resources. It speaks over standard input and output, and ends when the client does; what we have to say goes to stderr.
It is part of the agent layer: npm install @agentfense/agent.

DIR itself is not written unless you ask for it.

Rules:
${RULES_HELP}

Client:
  --http[=ADDRESS]  serve over HTTP instead, until SIGINT or SIGTERM, at http://ADDRESS/mcp (default 127.0.0.1:9010)
  --key KEY         what HTTP clients have to send as Authorization: Bearer KEY; better in AGENTFENSE_API_KEY: other users
                    of this machine can see what is on a command line (default: a random one, which is printed)
  --allow-host NAME  another name by which HTTP clients call this machine (may be repeated)
  --approve WHO     who agrees to calls rated HIGH or CRITICAL: ask (default: the client's user; where the client cannot ask,
                    they are refused) or never (nobody is asked, they run)
  --browser[=PATH]  tools for a browser too: a Chromium in the sandbox, with the network that the sandbox has

Sandbox:
  --runtime NAME    bwrap (default) or docker
  --image NAME      docker: the image
  --pull            docker: fetch the image when it is not there
  --toolchains WHICH  bwrap: auto (default) shows the programs that your PATH finds outside of /usr; off shows none
  --network[=MODE]  none (default), private (the internet, not this machine; what --network alone means), filtered (what
                    the project's policy lists, or --allow) or host
${ALLOW_HELP}
  --env NAME=VALUE  a variable for commands (may be repeated); NAME alone passes on the one here
  --home DIR        keep the home (~) in this directory of yours, made if absent, for one sandbox at a time

Limits:
  --memory SIZE     512m, 1g …
  --cpus NUMBER     0.5, 2 …
  --pids NUMBER     processes and threads together (default 1024)
  --disk SIZE       the most the changes and the home may take together

Changes:
  --write-through   write them back to DIR after each call, as far as the rules allow: some clients leave no time at the end
  --apply[=WHEN]    write them back to DIR at the end: when the client ended in peace (default), or always
  --hold-executables  write back nothing that ! marks in the list: what this machine may run or trust unasked
  --all             list each of them at the end, also many in one directory and those that DIR's .gitignore files name
  --patch FILE      write them here at the end, as a patch for git apply
                    Without any of these they are listed and thrown away.
  -h, --help        this text

Exit codes: 0 when the client is gone or after a signal, 123 when not everything could be written back (the rest is kept as a
diff, and its place is told), 1 when it did not work, 125 when the sandbox cannot be had, 2 when this command was given wrongly.
`;

/** Who agrees to risky calls; the words of the MCP server itself. */
const APPROVALS = ["ask", "never"] as const satisfies readonly McpApproval[];

export interface McpRequest {
  readonly sandbox: SandboxRequest;
  /** Absent: standard input and output. */
  readonly http: HttpPlace | undefined;
  readonly approval: McpApproval;
  /** Absent: no browser. */
  readonly browser: { readonly executablePath: string | undefined } | undefined;
  readonly patch: string | undefined;
  /** Changes reach the directory with each call. */
  readonly writesThrough: boolean;
}

/** What `mcp` was asked for. */
export async function readMcpRequest(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<McpRequest> {
  const { request, values } = await readSandboxRequest("mcp", args.map(fillImplied), {
    http: { type: "string" },
    key: { type: "string" },
    "allow-host": { type: "string", multiple: true },
    approve: { type: "string" },
    browser: { type: "string" },
    patch: { type: "string" },
    "write-through": { type: "boolean" },
  });
  const own = values as OwnValues;
  refuseOthers(request);
  const { approve = "ask" } = own;
  if (!isApproval(approve)) {
    throw new UsageError(`--approve is one of ${APPROVALS.join(", ")}, not ${JSON.stringify(approve)}`, {
      slip: { given: approve, known: APPROVALS },
    });
  }
  if (own.http === undefined && (own.key !== undefined || own["allow-host"] !== undefined)) {
    throw new UsageError(`--${own.key === undefined ? "allow-host" : "key"} goes with --http`);
  }
  if (own["write-through"] && request.apply !== "never")
    throw new UsageError("give --write-through or --apply, not both");
  return {
    sandbox: request,
    http: own.http === undefined ? undefined : readPlace(own.http, own, environment),
    approval: approve,
    browser: own.browser === undefined ? undefined : { executablePath: own.browser || undefined },
    patch: own.patch === undefined ? undefined : resolve(own.patch),
    writesThrough: own["write-through"] === true,
  };
}

interface OwnValues {
  readonly http?: string;
  readonly key?: string;
  readonly "allow-host"?: readonly string[];
  readonly approve?: string;
  readonly browser?: string;
  readonly patch?: string;
  readonly "write-through"?: boolean;
}

const DEFAULT_ADDRESS = "127.0.0.1:9010";

/** As for `--network`: the value follows a "=", or nobody could tell it from the directory. */
function fillImplied(argument: string): string {
  if (argument === "--http") return `--http=${DEFAULT_ADDRESS}`;
  return argument === "--browser" ? "--browser=" : argument;
}

/** Options that `run` has and a sandbox of the engine does not. */
function refuseOthers({ spec, workdir, keptDelta }: SandboxRequest): void {
  const given = [
    ...(spec.rootDirectory === undefined ? [] : ["--root"]),
    ...(spec.readOnlyPaths === undefined || spec.readOnlyPaths.length === 0 ? [] : ["--read-only-path"]),
    ...(spec.ociRuntime === undefined ? [] : ["--oci-runtime"]),
    ...(spec.secrets === undefined ? [] : ["--secret"]),
    ...(workdir === undefined ? [] : ["--workdir"]),
    ...(keptDelta === undefined ? [] : ["--delta"]),
  ];
  if (given[0] !== undefined) throw new UsageError(`mcp has no ${given[0]}`);
}

function isApproval(word: string): word is McpApproval {
  return (APPROVALS as readonly string[]).includes(word);
}
