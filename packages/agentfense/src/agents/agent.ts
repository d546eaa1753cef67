import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, delimiter, isAbsolute, join } from "node:path";
import { type AgentProfile, POLICY_FILE, type ProjectPolicy, readAgentProfileFile } from "@agentfense/sdk/project";
import type { ExecOutcome, ExecRequest } from "@agentfense/server/isolation";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { print, warn } from "../output.ts";
import { explainingPolicy } from "../project-policy.ts";
import { changesOf, exitCodeAfter, reportChanges, type Settlement, settleChanges } from "../run/changes.ts";
import { type Collected, exitCodeOf, inputToPassOn, printJson, runToEnd, warnOfLimits } from "../run/command-output.ts";
import { inSandbox } from "../run/embedded.ts";
import { explainRequest } from "../run/explanation.ts";
import type { SandboxValues } from "../run/options.ts";
import { requireDeltaApart, resolveDelta } from "../run/placement.ts";
import { converse } from "../run/raw-terminal.ts";
import { reviewChanges } from "../run/review.ts";
import { RunDelta } from "../run/run-delta.ts";
import { networkSpec, readSandboxRequest, type SandboxRequest } from "../run/sandbox-request.ts";
import { secretsOfProfile } from "../run/secrets.ts";
import { Interruption } from "../stop-signals.ts";
import { printable } from "../terminal.ts";
import { counted, quoted } from "../wording.ts";
import { AGENT_ARGUMENTS, AGENTS } from "./profiles.ts";

/** The program that is the agent, a directory, and what else goes to the program. */
interface AgentCall {
  readonly values: SandboxValues & OwnValues;
  readonly given: readonly [name: string, directory: string | undefined];
  readonly command: readonly string[];
}

/** `agentfense agent` */
export async function runAgent(call: AgentCall): Promise<number> {
  const { request, profile, place, argv, options } = await readRequest(call);
  if (options.explain) {
    await print(explainRequest(request, { json: options.json }));
    return 0;
  }
  await requireProgram(profile);
  await mkdir(place.directory, { recursive: true, mode: 0o700 });
  using interruption = new Interruption();
  if (!options.continues) await requireNothingKept(request, options.name, interruption.signal);
  await using delta = await RunDelta.open(request);
  const isAttended = process.stdin.isTTY && process.stdout.isTTY && !options.json;
  try {
    const { signal } = interruption;
    const outcome = await inSandbox(request, delta.path, interruption, async (sandbox): Promise<Collected> => {
      if (isAttended) return await converse(sandbox, request, { argv, signal });
      return await runToEnd(sandbox, execOf(argv, request), { json: options.json, signal });
    });
    signal.throwIfAborted();
    const settlement = await settle({ request, delta, outcome, isAttended, signal });
    if (options.json) await printJson(outcome, settlement);
    else if (!isAttended) {
      warnOfLimits(outcome);
      reportChanges(request, settlement, exitCodeOf(outcome));
    }
    if (isAttended && (await changesOf(request, delta.path, signal)).length > 0) {
      tellHowToGoOn(options.name, request, delta.path);
    }
    return exitCodeAfter(settlement, exitCodeOf(outcome));
  } catch (error) {
    if (interruption.exitCode === undefined) throw error;
    warn(`interrupted; what was changed so far is kept in ${delta.path}`);
    return interruption.exitCode;
  }
}

interface Ended {
  readonly request: SandboxRequest;
  readonly delta: RunDelta;
  readonly outcome: ExecOutcome;
  readonly isAttended: boolean;
  readonly signal: AbortSignal;
}

/** A person who did not say beforehand what is to become of the changes is asked. */
async function settle({ request, delta, outcome, isAttended, signal }: Ended): Promise<Settlement> {
  if (isAttended && request.apply === "never") return await reviewChanges(request, delta.path, signal);
  const settlement = await settleChanges(request, delta, { exitCode: exitCodeOf(outcome), signal });
  if (isAttended) reportChanges(request, settlement, exitCodeOf(outcome));
  return settlement;
}

function execOf(argv: readonly [string, ...string[]], { workdir }: SandboxRequest): ExecRequest {
  const input = inputToPassOn();
  return {
    command: argv,
    ...(input === undefined ? {} : { stdin: input }),
    ...(workdir === undefined ? {} : { workdir }),
  };
}

async function readRequest({ values: options, given: [name, directory], command: more }: AgentCall) {
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(name)) {
    throw new UsageError(`agent takes ${AGENT_ARGUMENTS}, not ${printable(name)}`);
  }
  const { request, project } = await readSandboxRequest(options, directory, { preset: "development" });
  const profile = await findProfile(name, project, options);
  const place = agentPlace(name, request.directory, process.env);
  // A project that has this user's state in it would show the agent what it and others keep there.
  const keptDelta = request.keptDelta ?? (await resolveDelta(place.delta));
  requireDeltaApart(request.directory, keptDelta);
  const network = networkFor(request, profile, options);
  const named = request.spec.secrets ?? [];
  const secrets = typeof network === "string" ? named : [...named, ...secretsOfProfile(profile, named, process.env)];
  const argv: readonly [string, ...string[]] = [profile.program, ...(profile.arguments ?? []), ...more];
  return {
    profile,
    place,
    argv,
    request: {
      ...request,
      home: request.home ?? place.home,
      keptDelta,
      network,
      spec: {
        ...request.spec,
        ...networkSpec(network, secrets, request.learns),
        env: { ...profile.env, ...request.spec.env },
      },
    },
    options: {
      name,
      continues: options.continue === true,
      json: options.json === true,
      explain: options.explain === true,
    },
  };
}

/** What the user lists, and what the agent cannot do without; a mode that the user names is all there is. */
function networkFor(
  { network }: SandboxRequest,
  { allow = [] }: AgentProfile,
  { network: named }: SandboxValues,
): SandboxRequest["network"] {
  if (typeof network === "string") return named === undefined ? { allow } : network;
  return { ...network, allow: [...allow, ...(network.allow ?? [])] };
}

interface OwnValues {
  readonly profile?: string | undefined;
  readonly "trust-profile"?: boolean | undefined;
  readonly continue?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly explain?: boolean | undefined;
}

/** The file that is named, else the project's, if the user trusts it, else one that is known. */
async function findProfile(
  name: string,
  project: ProjectPolicy | undefined,
  { profile: file, "trust-profile": trusts }: OwnValues,
): Promise<AgentProfile> {
  if (file !== undefined) return await explainingPolicy(() => readAgentProfileFile(file), "correct it");
  const fromProject = ownOf(project?.agents, name);
  if (fromProject !== undefined && trusts !== true) throw untrusted(name, fromProject);
  const found = fromProject ?? ownOf(AGENTS, name);
  if (found !== undefined) return found;
  const known = [...new Set([...Object.keys(AGENTS), ...Object.keys(project?.agents ?? {})])];
  throw new UsageError(`there is no agent ${JSON.stringify(name)}; there are: ${known.join(", ")}`, {
    slip: { given: name, known },
  });
}

function ownOf<Value>(values: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
}

/** A file that came with the project could send the user's keys anywhere. */
function untrusted(name: string, { program, allow = [], secrets = {} }: AgentProfile): UsageError {
  const keys = Object.entries(secrets).map(([key, { hosts, from }]) => {
    const named = from === undefined ? key : `${key} or ${from}`;
    return `${named} to ${hosts.join(", ")}`;
  });
  const wants = [
    `runs ${program}`,
    `talks to ${allow.join(", ") || "nobody"}`,
    `sends ${keys.join("; ") || "no keys"}`,
  ];
  return new UsageError(`the agent ${name} of ${POLICY_FILE} ${wants.join(", ")}`, {
    hint: "add --trust-profile if you agree",
  });
}

/** Changes of an earlier run are somebody's work: going on with them, or not, is not ours to choose. */
async function requireNothingKept(request: SandboxRequest, name: string, signal: AbortSignal): Promise<void> {
  const { keptDelta = "" } = request;
  const changes = (await isThere(join(keptDelta, "tree"))) ? await changesOf(request, keptDelta, signal) : [];
  if (changes.length === 0) return;
  throw new CommandFailure(
    `${counted(changes.length, "change")} of ${name} kept, and not in ${request.directory} yet`,
    {
      hint: [
        `go on with them: agentfense agent ${name} --continue`,
        ...["diff", "apply", "discard --all"].map((word) => `agentfense ${word} --delta ${quoted(keptDelta)}`),
      ].join("\n"),
    },
  );
}

/** What PATH does not find here, the sandbox does not either. */
async function requireProgram({ program, install }: AgentProfile): Promise<void> {
  const places = program.includes("/")
    ? [""]
    : (process.env.PATH ?? "").split(delimiter).filter((place) => place !== "");
  for (const place of places) if (await isThere(join(place, program), constants.X_OK)) return;
  throw new CommandFailure(`${program} is not in your PATH`, {
    exitCode: 125,
    hint: install === undefined ? undefined : `install it: ${install}`,
  });
}

async function isThere(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}

function tellHowToGoOn(name: string, { directory }: SandboxRequest, delta: string): void {
  warn(`the rest is kept; go on with: agentfense agent ${name} --continue ${quoted(directory)}`);
  warn(`or see it with: agentfense diff --delta ${quoted(delta)}`);
}

/** Where an agent keeps what is its own, for one project: outside of the project, and for this user alone. */
interface AgentPlace {
  /** Holds both; not made yet, perhaps. */
  readonly directory: string;
  /** Its login, settings and caches. */
  readonly home: string;
  /** Changes that are not in the project yet. */
  readonly delta: string;
}

/** A project that was moved is another one. */
function agentPlace(agent: string, project: string, env: NodeJS.ProcessEnv): AgentPlace {
  const { XDG_STATE_HOME: state = "" } = env;
  const base = isAbsolute(state) ? state : join(homedir(), ".local/state");
  const digest = createHash("sha256").update(project).digest("hex").slice(0, 12);
  // The name is for people who look; two projects of the same name differ in the rest.
  const name = `${basename(project)
    .replace(/[^\w.-]/g, "_")
    .slice(0, 40)}-${digest}`;
  const directory = join(base, "agentfense/agents", agent, name);
  return { directory, home: join(directory, "home"), delta: join(directory, "delta") };
}
