import { posix } from "node:path";
import { compileRules } from "@agentfense/permission";
import { type BoxSpec, HOME } from "../backend/backend.ts";
import { invalid } from "../backend/isolation-error.ts";
import { checkEnvironment, checkHostname } from "../exec/request.ts";
import { homeIn } from "../filesystem/delta.ts";
import { validateLimits } from "../limits/limits.ts";
import { treePath } from "../mount/host.ts";
import { checkSecretValue } from "../network/secrets.ts";
import type { SandboxSpec, WorkspaceSpecification } from "./api.ts";

const DEFAULT_TARGET = "/workspace";
const DEFAULT_TMP_BYTES = 1024 ** 3;
/** Enough for any build; few enough that a fork bomb in a sandbox nobody thought about does not take the host. */
const DEFAULT_PIDS = 1024;
const DEFAULT_HOSTNAME = "sandbox";
/** Parts of the box that are its own; a workspace there would hide them, or hide the workspace. */
const RESERVED = [
  HOME,
  "/proc",
  "/sys",
  "/dev",
  "/etc",
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
];

export function targetOf(workspace: WorkspaceSpecification): string {
  return workspace.target ?? DEFAULT_TARGET;
}

/** Everything that is mounted for a sandbox: its workspaces, and behind them its home, where everything may be written. */
export function mountsOf({ workspaces, home }: SandboxSpec): readonly WorkspaceSpecification[] {
  const { delta, beneath = [] } = workspaces[0] ?? {};
  const place = home ?? (delta === undefined ? undefined : homeIn(delta));
  if (place === undefined) return workspaces;
  const rules = [{ pattern: "**", permission: "write" }] as const;
  return [...workspaces, { target: HOME, lowers: [], beneath: home === undefined ? beneath : [], delta: place, rules }];
}

export function checkSecrets({
  secrets = [],
  network,
  env = {},
}: Pick<SandboxSpec, "secrets" | "network" | "env">): void {
  if (secrets.length === 0) return;
  if (network !== "filtered") throw invalid("secrets need the network filtered, which puts them into requests");
  if (secrets.length > MOST_SECRETS) throw invalid(`a sandbox has at most ${MOST_SECRETS} secrets`);
  for (const [index, secret] of secrets.entries()) {
    checkSecretValue(secret, secret.value);
    if (secret.name in env) throw invalid(`${secret.name} is both a variable and a secret`);
    if (secrets.findIndex(({ name }) => name === secret.name) < index)
      throw invalid(`the secret ${secret.name} is given twice`);
  }
}

const MOST_SECRETS = 64;

/** Refuses what cannot be right before anything is made, and fills in the defaults. */
export function boxSpec(
  id: string,
  spec: SandboxSpec,
  more: { readonly mountPoint: string; readonly placeholders?: Readonly<Record<string, string>> | undefined } & Pick<
    BoxSpec,
    "answerIn" | "trust"
  >,
): BoxSpec {
  const { mountPoint, answerIn, trust, placeholders } = more;
  const { workspaceHome } = spec;
  const second = workspaceHome === undefined ? [] : [{ source: treePath(mountPoint, 0), target: workspaceHome }];
  const account =
    workspaceHome === undefined ? undefined : { name: workspaceHome.slice("/home/".length), home: workspaceHome };
  return {
    id,
    answerIn,
    trust,
    mounts: [
      ...mountsOf(spec).map((mount, index) => ({ source: treePath(mountPoint, index), target: targetOf(mount) })),
      ...second,
    ],
    limits: { pids: DEFAULT_PIDS, ...spec.limits },
    network: spec.network ?? "none",
    account,
    env: {
      ...(account === undefined ? {} : { HOME: account.home, USER: account.name, LOGNAME: account.name }),
      ...spec.env,
      ...placeholders,
    },
    hostname: checkHostname(spec.hostname ?? DEFAULT_HOSTNAME),
    tmpBytes: spec.tmpBytes ?? DEFAULT_TMP_BYTES,
    readOnlyPaths: spec.readOnlyPaths ?? [],
    rootDirectory: spec.rootDirectory,
    image: spec.image,
    ociRuntime: spec.ociRuntime,
  };
}

export function checkSpecification(spec: SandboxSpec): void {
  if (spec.workspaces.length === 0) throw invalid("a sandbox needs at least one workspace");
  const { workspaceHome } = spec;
  if (workspaceHome !== undefined && !isWorkspaceHome(workspaceHome)) {
    throw invalid("a workspace is a home at /home/NAME, where NAME is a user's and not agent");
  }
  const targets = [...spec.workspaces.map(targetOf), ...(workspaceHome === undefined ? [] : [workspaceHome])];
  for (const target of targets) checkTarget(target);
  for (const [index, target] of targets.entries()) {
    const clash = targets.find((other, at) => at !== index && (other === target || other.startsWith(`${target}/`)));
    if (clash !== undefined) throw invalid(`the workspaces at ${target} and ${clash} lie in one another`);
  }
  for (const workspace of spec.workspaces) {
    compileRules(workspace.rules); // throws with the index of the bad rule
    if (workspace.lowers.length === 0) throw invalid("a workspace needs a codebase directory");
  }
  checkEnvironment(spec.env);
  checkHostname(spec.hostname ?? DEFAULT_HOSTNAME);
  if (spec.networkRules !== undefined && spec.network !== "filtered") {
    throw invalid("only a filtered network has a list of hosts");
  }
  checkSecrets(spec);
  validateLimits(spec.limits ?? {});
  for (const [name, value] of Object.entries({
    tmpBytes: spec.tmpBytes,
    diskBytes: spec.limits?.diskBytes,
    diskFiles: spec.limits?.diskFiles,
    outputBytes: spec.limits?.outputBytes,
  })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0))
      throw invalid(`${name} is a positive number`);
  }
}

/** A name as useradd takes it, which is none of ours. */
export function isWorkspaceHome(path: string): boolean {
  return /^\/home\/[a-z_][a-z0-9_-]{0,30}$/.test(path) && path !== HOME;
}

function checkTarget(target: string): void {
  const plain = target.startsWith("/") && target !== "/" && posix.normalize(target) === target && !target.endsWith("/");
  if (!plain || target.includes("\0")) {
    throw invalid(`${JSON.stringify(target)} is not a place for a workspace: an absolute path without . and .. is`);
  }
  if (RESERVED.some((place) => target === place || target.startsWith(`${place}/`)) || HOME.startsWith(`${target}/`)) {
    throw invalid(`a workspace cannot be at ${target}: the sandbox needs that place itself`);
  }
}
