import {
  type AccessEvent,
  homeDirectory,
  lockHome,
  openIsolation,
  type Sandbox,
  SandboxError,
  type SandboxEvent,
} from "@agentfense/server/isolation";
import { writeDeltaRecord } from "../changes/delta-record.ts";
import { CommandFailure, UsageError } from "../command.ts";
import { warn } from "../output.ts";
import { PullProgress } from "../progress/pull.ts";
import { describeLeftOut } from "../toolchains/report.ts";
import type { Interruption } from "./interruption.ts";
import { RefusedConnections } from "./refused-connections.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/** Our own failures: as with `docker run` and `env`, a code that commands hardly ever end with. */
const NOT_RUN = 125;

/**
 * Makes the sandbox that was asked for, lets `use` work in it, and takes it away again: afterwards no process, mount or
 * control group is left, and the delta does not change any more.
 */
export async function inSandbox<Result>(
  request: SandboxRequest,
  delta: string,
  interruption: Interruption,
  use: (sandbox: Sandbox) => Promise<Result>,
  /** Told of what is looked at, read and written in the workspace, each path once for each level. */
  onAccess?: (access: AccessEvent) => void,
): Promise<Result> {
  const { signal } = interruption;
  const refused = new RefusedConnections();
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
      },
      ...(home ? { home } : {}),
    };
    await using sandbox = await pulling((onProgress) => isolation.create(spec, { signal, onProgress }));
    await sandbox.start({ signal });
    // The delta is ours alone from here on, and nothing has run yet.
    const { directory, rules, rulesLabel: label } = request;
    await writeDeltaRecord(delta, { directory, rules, label });
    return await use(sandbox);
  } catch (error) {
    throw explained(error);
  } finally {
    refused.report();
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
  if (!(error instanceof SandboxError)) return error;
  const { message } = error;
  if (error.code === "INVALID_ARGUMENT") return new UsageError(message, { hint: error.hint });
  const doctor = error.code === "RUNTIME_UNAVAILABLE" ? ["see what is missing: agentfense doctor"] : [];
  const hint = [...(error.hint === undefined ? [] : [error.hint]), ...doctor].join("\n") || undefined;
  return new CommandFailure(message, { exitCode: NOT_RUN, hint });
}
