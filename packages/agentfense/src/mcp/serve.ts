import {
  AgentError,
  type ChangesReachProject,
  ClientConfirmationService,
  mcpHttpHandler,
  sandboxBrowser,
  serveStdio,
} from "@agentfense/agent/mcp";
import type { ResourceLimits } from "@agentfense/sdk";
import { SandboxError } from "@agentfense/sdk";
import { networkMode } from "@agentfense/sdk/project";
import { placeText } from "@agentfense/server/isolation";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { EmbeddedEngine } from "../embedded/engine.ts";
import { warn } from "../output.ts";
import { NOT_RUN } from "../run/command-output.ts";
import type { SandboxRequest } from "../run/sandbox-request.ts";
import { Sandbox } from "../sandbox.ts";
import { StopSignals } from "../stop-signals.ts";
import { listen } from "./listener.ts";
import type { McpRequest } from "./request.ts";
import { reportRemarkable, settle, writeThrough } from "./settle.ts";

/** As for `run`. */
const NOT_WRITTEN_BACK = 123;

/** Serves until the client is gone or somebody wants an end. Then nothing is left running or mounted. */
export async function serveMcp(request: McpRequest): Promise<number> {
  using stop = StopSignals.ofServer();
  // Whoever reads what we have to say may leave; standard output is the protocol's, which notices by itself.
  process.stderr.on("error", () => {});
  try {
    await using engine = await EmbeddedEngine.open(engineOptions(request.sandbox));
    await using sandbox = await Sandbox.fromLocal(request.sandbox.directory, {
      ...sandboxOptions(request.sandbox),
      engine,
      signal: stop.signal,
    });
    await serve(request, sandbox, stop.signal);
    return (await settle(request, sandbox, { inPeace: !stop.signal.aborted })) ? 0 : NOT_WRITTEN_BACK;
  } catch (error) {
    if (stop.signal.aborted && error === stop.signal.reason) return 0;
    throw explained(error);
  } finally {
    // A pipe that the client still holds would keep the process.
    process.stdin.destroy();
  }
}

async function serve(request: McpRequest, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const confirmation = new ClientConfirmationService(request.approval, {
    toRunUnasked: "start agentfense mcp with --approve never",
  });
  await using parts = new AsyncDisposableStack();
  const browser = request.browser && parts.use(await sandboxBrowser(sandbox, { ...request.browser, confirmation }));
  const options = { holdExecutables: request.sandbox.holdsExecutables };
  const afterCall = request.writesThrough ? () => writeThrough(sandbox, options, reportRemarkable) : undefined;
  const source = { sandbox, confirmation, browser, afterCall, changesReachProject: changesReachProject(request) };
  const { http } = request;
  if (http === undefined) {
    if (process.stdin.isTTY) warn("this speaks MCP over standard input and output; Ctrl-C ends it");
    await serveStdio({ ...source, signal });
    return;
  }
  const access = { apiKey: http.key.value, allowedHosts: http.names };
  const onError = (error: unknown): void => warn(error instanceof Error ? error.message : String(error));
  const handler = parts.use(mcpHttpHandler({ ...source, ...access, onError }));
  await listen(http, handler, signal);
}

function changesReachProject({ writesThrough, sandbox }: McpRequest): ChangesReachProject {
  if (writesThrough) return "with-each-call";
  return sandbox.apply === "never" ? "when-taken-over" : "at-the-end";
}

function engineOptions({ runtime, allowPull, toolchains, network }: SandboxRequest) {
  const mode = networkMode(network);
  return {
    runtimes: [runtime] as const,
    docker: { allowPull },
    toolchains: toolchains === undefined ? ("off" as const) : ("auto" as const),
    networks: mode === "none" ? [] : [mode],
    log: ({ level, message }: { readonly level: string; readonly message: string }) => {
      if (level !== "info") warn(message);
    },
  };
}

function sandboxOptions({ rules, runtime, spec, limits, network, home }: SandboxRequest) {
  const { memoryBytes, cpuQuota, pids, diskBytes } = limits;
  const resources: ResourceLimits = { memoryBytes, cpuQuota, pidsLimit: pids, diskBytes };
  // The project's policy is in these already.
  return {
    policy: false as const,
    permissions: rules,
    runtime,
    image: spec.image,
    network,
    secrets: Object.fromEntries(
      (spec.secrets ?? []).map(({ name, value, hosts, place }) => [name, { value, hosts, in: placeText(place) }]),
    ),
    env: spec.env,
    resources,
    home,
  };
}

function explained(error: unknown): unknown {
  if (!(error instanceof SandboxError || error instanceof AgentError)) return error;
  const { message, hint } = error;
  const code = "code" in error ? error.code : undefined;
  if (code === "INVALID_ARGUMENT") return new UsageError(message, { hint });
  const doctor = code === "RUNTIME_UNAVAILABLE" ? ["see what is missing: agentfense doctor"] : [];
  return new CommandFailure(message, {
    exitCode: NOT_RUN,
    hint: [...(hint === undefined ? [] : [hint]), ...doctor].join("\n") || undefined,
  });
}
