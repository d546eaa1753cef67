import { resolve } from "node:path";
import type { Rule } from "@agentfense/permission";
import type { SandboxOptions } from "@agentfense/sdk";
import {
  networkRules,
  SandboxError,
  type SandboxLimits,
  type SandboxSpec,
  type SecretWithValue,
  withSecretHosts,
} from "@agentfense/server/isolation";
import { parseArguments, UsageError } from "../command.ts";
import { requireDeltaApart, resolveDelta } from "../mount/placement.ts";
import { ALLOW_HELP, ALLOW_OPTIONS, askedNetwork } from "../network-option.ts";
import { announcePolicy, findPolicy } from "../project-policy.ts";
import { RULES_HELP, RULES_OPTIONS, rulesFor } from "../rules-option.ts";
import { readSecrets, SECRET_HELP, SECRET_OPTIONS } from "../secret-option.ts";
import { parseByteSize, parseCount } from "../size.ts";
import { printable } from "../terminal.ts";
import { type ShownToolchains, toolchainsFor } from "../toolchains/workspaces.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import { fillImpliedValues } from "./optional-values.ts";
import { withProjectPart } from "./project-part.ts";
import { parseCpuQuota, parseEnvironment } from "./quantities.ts";

/** The options of `run` and `shell` alike. */
const SANDBOX_OPTIONS = {
  ...RULES_OPTIONS,
  runtime: { type: "string" },
  image: { type: "string" },
  "oci-runtime": { type: "string" },
  pull: { type: "boolean" },
  root: { type: "string" },
  "read-only-path": { type: "string", multiple: true },
  toolchains: { type: "string" },
  network: { type: "string" },
  ...ALLOW_OPTIONS,
  ...SECRET_OPTIONS,
  memory: { type: "string" },
  cpus: { type: "string" },
  pids: { type: "string" },
  disk: { type: "string" },
  env: { type: "string", multiple: true },
  workdir: { type: "string" },
  home: { type: "string" },
  delta: { type: "string" },
  apply: { type: "string" },
  "hold-executables": { type: "boolean" },
  all: { type: "boolean" },
} as const;

export const SANDBOX_HELP = `Rules:
${RULES_HELP}

Sandbox:
  --runtime NAME    bwrap (default) or docker
  --image NAME      docker: the image
  --oci-runtime NAME  docker: another runtime the engine knows, such as runsc
  --pull            docker: fetch the image when it is not there
  --root DIR        bwrap: a root directory of your own instead of this machine's programs
  --read-only-path PATH  bwrap: show this too, at the same path, read-only (may be repeated)
  --toolchains WHICH  bwrap: auto (default) shows, read-only, the programs that your PATH finds outside of /usr, with what
                    they need: nvm, pyenv, uv, cargo, Homebrew …; off shows none
  --network[=MODE]  none (default), private (the internet, not this machine; what --network alone means), filtered (what
                    the project's policy lists, or --allow) or host
${ALLOW_HELP}
${SECRET_HELP}
  --env NAME=VALUE  a variable for the command (may be repeated); NAME alone passes on the one here
  --workdir DIR     where to start, absolute or relative to the workspace (default /workspace)
  --home DIR        keep the home (~) in this directory of yours, made if absent, for one sandbox at a time: logins, caches
                    and what is installed for the user. Without it the home goes where the changes go

Limits:
  --memory SIZE     512m, 1g …
  --cpus NUMBER     0.5, 2 …
  --pids NUMBER     processes and threads together (default 1024)
  --disk SIZE       the most the changes and the home may take together

Changes:
  --delta DIR       keep them here (made if absent, continued if it holds some)
  --apply[=WHEN]    write them back to DIR at the end: when the command succeeded (default), or always
                    What cannot be written back is kept, and it is said where.
  --hold-executables  of that, write back nothing that ! marks in the list: what this machine may run or trust unasked
  --all             list each of them, also many in one directory and those that DIR's .gitignore files name
                    Without either they are listed and thrown away.`;

/** What `run` and `shell` were asked for, checked as far as that goes without making anything. */
export interface SandboxRequest {
  readonly directory: string;
  readonly rules: readonly Rule[];
  /** A short name for the rules. */
  readonly rulesLabel: string;
  readonly runtime: "bwrap" | "docker";
  /** Everything of the specification but the workspace, whose delta may still have to be made. */
  readonly spec: Omit<SandboxSpec, "workspaces" | "runtime">;
  readonly limits: SandboxLimits;
  readonly network: NonNullable<SandboxOptions["network"]>;
  /** Absent: none. */
  readonly toolchains: ShownToolchains | undefined;
  readonly allowPull: boolean;
  readonly workdir: string | undefined;
  /** Absent: it goes with the delta. */
  readonly home: string | undefined;
  readonly keptDelta: string | undefined;
  readonly apply: "never" | "success" | "always";
  /** What this machine may run or trust unasked is not written back. */
  readonly holdsExecutables: boolean;
  /** Every change is listed. */
  readonly listsAll: boolean;
}

type OptionsConfig = NonNullable<Parameters<typeof parseArguments>[1]>;

/** Reads the options, the common ones and those in `more`, and at most one directory. `preset` is the one without a word from anybody. */
export async function readSandboxRequest<const More extends OptionsConfig>(
  command: string,
  args: readonly string[],
  more: More,
  { preset }: { readonly preset?: string } = {},
) {
  const { values, positionals } = parseArguments(fillImpliedValues(args), { ...SANDBOX_OPTIONS, ...more });
  const [directory = ".", ...surplus] = positionals;
  if (surplus.length > 0)
    throw new UsageError(`${command} takes one directory, not ${printable(positionals.join(" "))}`);
  const common = values as CommonValues;
  const asked = {
    runtime: common.runtime,
    network: askedNetwork(common),
    env: parseEnvironment(common.env ?? [], process.env),
    limits: readLimits(common),
  };
  const place = await resolveDirectory(directory);
  const project = await findPolicy(place, common);
  const chosen = await rulesFor(common, project, preset);
  const { settings, taken } = await withProjectPart(asked, project);
  const secrets = await readSecrets(common, process.env);
  const { limits, env, network = secrets.length > 0 ? { allow: [] } : "none" } = settings;
  const runtime = chooseRuntime(settings.runtime ?? "bwrap", common);
  const request: SandboxRequest = {
    directory: place,
    rules: chosen.policy.rules,
    rulesLabel: chosen.label,
    runtime,
    limits,
    network,
    toolchains: usesToolchains(runtime, common) ? await toolchainsFor(place) : undefined,
    spec: {
      limits,
      ...networkSpec(network, secrets),
      env,
      ...(common.image === undefined ? {} : { image: common.image }),
      ...(common["oci-runtime"] === undefined ? {} : { ociRuntime: common["oci-runtime"] }),
      ...(common.root === undefined ? {} : { rootDirectory: await resolveDirectory(common.root, "--root") }),
      readOnlyPaths: (common["read-only-path"] ?? []).map((path) => resolve(path)),
    },
    allowPull: common.pull === true,
    workdir: common.workdir,
    home: common.home === undefined ? undefined : resolve(common.home),
    keptDelta: common.delta === undefined ? undefined : await resolveDelta(common.delta),
    apply: (common.apply ?? "never") as SandboxRequest["apply"],
    holdsExecutables: common["hold-executables"] === true,
    listsAll: common.all === true,
  };
  if (request.keptDelta !== undefined) requireDeltaApart(request.directory, request.keptDelta);
  announcePolicy([...(chosen.fromProject ? ["rules"] : []), ...taken]);
  return { request, values, project };
}

/** Node's types cannot tell the common options apart once others are mixed in. */
type CommonValues = ReturnType<typeof parseArguments<typeof SANDBOX_OPTIONS>>["values"];

const BELONGS_TO: readonly (readonly [option: keyof CommonValues, runtime: SandboxRequest["runtime"]])[] = [
  ["image", "docker"],
  ["oci-runtime", "docker"],
  ["pull", "docker"],
  ["root", "bwrap"],
  ["read-only-path", "bwrap"],
  ["toolchains", "bwrap"],
];

function chooseRuntime(runtime: string, values: CommonValues): SandboxRequest["runtime"] {
  if (runtime !== "bwrap" && runtime !== "docker") {
    throw new UsageError(`--runtime is bwrap or docker, not ${JSON.stringify(runtime)}`);
  }
  for (const [option, owner] of BELONGS_TO) {
    if (values[option] !== undefined && owner !== runtime) {
      throw new UsageError(`--${option} belongs to the runtime ${owner}; add --runtime ${owner} or leave it out`);
    }
  }
  return runtime;
}

/** A root directory has programs of its own, and an image too. */
function usesToolchains(runtime: SandboxRequest["runtime"], { toolchains, root }: CommonValues): boolean {
  if (toolchains !== undefined && toolchains !== "auto" && toolchains !== "off") {
    throw new UsageError(`--toolchains is auto or off, not ${JSON.stringify(toolchains)}`);
  }
  if (toolchains === "auto" && root !== undefined) throw new UsageError("give --toolchains auto or --root, not both");
  return runtime === "bwrap" && root === undefined && toolchains !== "off";
}

export function networkSpec(
  network: SandboxRequest["network"],
  secrets: readonly SecretWithValue[],
): Pick<SandboxSpec, "network" | "networkRules" | "secrets"> {
  if (typeof network === "string") {
    if (secrets.length > 0) throw new UsageError(`--secret goes with the network filtered, not with ${network}`);
    return { network };
  }
  try {
    const rules = withSecretHosts(networkRules(network), secrets);
    return { network: "filtered", networkRules: rules, ...(secrets.length === 0 ? {} : { secrets }) };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    throw new UsageError([error.message, ...(error.hint === undefined ? [] : [error.hint])].join("; "));
  }
}

function readLimits({ memory, cpus, pids, disk }: CommonValues): SandboxLimits {
  return {
    ...(memory === undefined ? {} : { memoryBytes: parseByteSize(memory, "--memory") }),
    ...(cpus === undefined ? {} : { cpuQuota: parseCpuQuota(cpus, "--cpus") }),
    ...(pids === undefined ? {} : { pids: parseCount(pids, "--pids") }),
    ...(disk === undefined ? {} : { diskBytes: parseByteSize(disk, "--disk") }),
  };
}
