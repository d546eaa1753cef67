import {
  type AccessEvent,
  type BoxedWorkspace,
  homeDirectory,
  IsolationError,
  lockHome,
  openIsolation,
  type SandboxEvent,
} from "@agentfense/server/isolation";
import { writeDeltaRecord } from "../changes/kept-delta.ts";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { warn } from "../output.ts";
import { PullProgress } from "../progress/progress.ts";
import type { Interruption } from "../stop-signals.ts";
import { describeLeftOut } from "../toolchains/workspaces.ts";
import { counted } from "../wording.ts";
import { NOT_RUN } from "./command-output.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/**
 * Makes the sandbox that was asked for, lets `use` work in it, and takes it away again: afterwards no process, mount or
 * control group is left, and the delta does not change any more.
 */
export async function inSandbox<Result>(
  request: SandboxRequest,
  delta: string,
  interruption: Interruption,
  use: (sandbox: BoxedWorkspace) => Promise<Result>,
  /** Told of what is looked at, read and written in the workspace, each path once for each level. */
  onAccess?: (access: AccessEvent) => void,
): Promise<Result> {
  const { signal } = interruption;
  const refused = new RefusedConnections();
  const learned = request.learns ? new LearnedHosts() : undefined;
  try {
    const home = request.home && (await homeDirectory(request.home, [request.directory, delta]));
    using _locked = home ? lockHome(home) : undefined;
    await using isolation = await openIsolation({
      runtimes: [request.runtime],
      docker: { allowPull: request.allowPull },
    });
    if (asksForLimits(request)) for (const sentence of isolation.degradations) warn(sentence);
    const recordsAccess = onAccess !== undefined;
    const workspace = { lowers: [request.directory], delta, rules: request.rules, recordsAccess };
    const { workspaces = [], env = {}, leftOut = [] } = request.toolchains ?? {};
    if (leftOut.length > 0) warn(`of your PATH is not shown: ${describeLeftOut(leftOut)}`);
    const spec = {
      ...request.spec,
      env: { ...env, ...request.spec.env },
      runtime: request.runtime,
      workspaces: [workspace, ...workspaces],
      onEvent: (event: SandboxEvent): void => {
        if (event.kind === "accessed") onAccess?.(event);
        else refused.add(event);
        learned?.add(event);
      },
      ...(home ? { home } : {}),
    };
    await using sandbox = await pulling((onProgress) => isolation.create(spec, { signal, onProgress }));
    await sandbox.start({ signal });
    // The delta is ours alone from here on, and nothing has run yet.
    const { directory, rules, rulesLabel: label } = request;
    await writeDeltaRecord(delta, { directory, rules, label }).catch((error: Error) => {
      throw new CommandFailure(error.message, { exitCode: NOT_RUN });
    });
    return await use(sandbox);
  } catch (error) {
    throw explained(error);
  } finally {
    refused.report();
    learned?.report();
  }
}

/** Shows how far an image is that has to be fetched first. */
async function pulling<Made>(make: (onProgress: (line: string) => void) => Promise<Made>): Promise<Made> {
  using progress = new PullProgress(process.stderr);
  return await make((line) => progress.take(line));
}

/** The disk limit is the file system's own and always holds. */
function asksForLimits({ limits }: SandboxRequest): boolean {
  return limits.memoryBytes !== undefined || limits.cpuQuota !== undefined || limits.pids !== undefined;
}

function explained(error: unknown): unknown {
  if (!(error instanceof IsolationError)) return error;
  const { message } = error;
  if (error.code === "INVALID_ARGUMENT") return new UsageError(message, { hint: error.hint });
  const doctor = error.code === "RUNTIME_UNAVAILABLE" ? ["see what is missing: agentfense doctor"] : [];
  const hint = [...(error.hint === undefined ? [] : [error.hint]), ...doctor].join("\n") || undefined;
  return new CommandFailure(message, { exitCode: NOT_RUN, hint });
}

/** More than these nobody reads; a program may try as many as it likes. */
const SHOWN = 8;
const REMEMBERED = 1000;

/** What a sandbox tried to reach and its list does not allow, and where it sent placeholders that do not belong there. */
class RefusedConnections {
  readonly #hosts = new Map<string, number>();
  readonly #misplaced = new Set<string>();

  add(event: SandboxEvent): void {
    if (event.kind === "secret_misplaced" && this.#misplaced.size < REMEMBERED) {
      this.#misplaced.add(event.sentence ?? `a secret's placeholder was sent to ${event.host}`);
    }
    if (event.kind !== "connection_denied" || event.host === "") return;
    const name = event.port === 0 ? event.host : `${event.host}:${event.port}`;
    const known = this.#hosts.get(name);
    if (known === undefined && this.#hosts.size >= REMEMBERED) return;
    this.#hosts.set(name, (known ?? 0) + event.count);
  }

  /** For a person, at the end; nothing when there was nothing. */
  report(): void {
    const names = [...this.#hosts].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`));
    if (names.length > 0) warn(`the network's list kept it from ${listed(names)}; --allow HOST adds to the list`);
    if (this.#misplaced.size > 0) warn(listed([...this.#misplaced]));
  }
}

function listed(words: readonly string[]): string {
  const more = words.length - SHOWN;
  return `${words.slice(0, SHOWN).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The hosts that a sandbox reached while its list was learned, each with its ports. */
class LearnedHosts {
  readonly #ports = new Map<string, Set<number>>();

  add(event: SandboxEvent): void {
    if (event.kind !== "connection_allowed") return;
    const ports = this.#ports.get(event.host) ?? new Set();
    this.#ports.set(event.host, ports.add(event.port));
  }

  /** As the command line and a project's policy take it, for a person. */
  report(): void {
    const hosts = [...this.#ports]
      .map(([host, ports]) => `${host}:${[...ports].sort((one, other) => one - other).join(",")}`)
      .sort();
    if (hosts.length === 0) return void warn("it reached no host");
    warn(`it reached ${counted(hosts.length, "host")}, which these options allow, and no others:`);
    process.stderr.write(`${hosts.map((host) => `--allow ${host}`).join(" ")}\n`);
    warn("the same for the project's policy:");
    process.stderr.write(`network:\n  allow:\n${hosts.map((host) => `    - "${host}"\n`).join("")}`);
  }
}
