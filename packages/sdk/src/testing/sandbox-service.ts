import type { FileInfoSchema } from "@agentfense/protocol/codebase";
import { SandboxStatus } from "@agentfense/protocol/common";
import {
  type ExecInput,
  ExecOutput_OutputType,
  type ExecOutputSchema,
  type ExecRequest,
  ExecResultSchema,
  NetworkMode,
  type SandboxService,
  type SessionExecRequest,
} from "@agentfense/protocol/sandbox";
import { PERMISSIONS } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { diffChanges, listChanges, selectedChanges } from "./changes.ts";
import { checkCommand, type MockRun, type Outcome, workingDirectory } from "./commands.ts";
import { answered, Fault, invalid } from "./faults.ts";
import { type Handlers, pageOf, pieces, receive } from "./handlers.ts";
import { insidePath, nameOf, notRoot, workspacePath } from "./path-tree.ts";
import type { MockSandbox } from "./sandbox.ts";
import { applyChanges, syncAfterCommand } from "./sync.ts";
import type { ViewEntry } from "./view.ts";
import type { World } from "./world.ts";

/** Everything but what needs a process of its own: terminals, started processes, ports, watches and homes. */
export function sandboxHandlers(world: World): Handlers<typeof SandboxService> {
  return { ...lifecycleHandlers(world), ...commandHandlers(world), ...changeHandlers(world), ...fileHandlers(world) };
}

function lifecycleHandlers(world: World): Handlers<typeof SandboxService> {
  const on =
    (step: (sandbox: MockSandbox) => void) =>
    async ({ sandboxId }: { readonly sandboxId: string }) => {
      const sandbox = world.sandbox(sandboxId);
      step(sandbox);
      return sandbox.message;
    };

  return {
    createSandbox: async (request) => world.createSandbox(request).message,
    getSandbox: on(() => {}),
    startSandbox: on((sandbox) => sandbox.start()),
    stopSandbox: on((sandbox) => world.stopSandbox(sandbox)),
    pauseSandbox: on((sandbox) => sandbox.turnTo(SandboxStatus.PAUSED)),
    resumeSandbox: on((sandbox) => sandbox.turnTo(SandboxStatus.RUNNING)),

    async listSandboxes({ codebaseId, ownerId, status, labels, ...page }) {
      const all = [...world.sandboxes.values()].map(({ message }) => message);
      const listed = all.filter(
        (message) =>
          (codebaseId === "" || codebaseId === message.codebaseId) &&
          (ownerId === "" || ownerId === message.ownerId) &&
          (status === SandboxStatus.UNSPECIFIED || status === message.status) &&
          Object.entries(labels).every(([name, value]) => message.labels[name] === value),
      );
      const { items, nextPageToken } = pageOf(listed, page);
      return { sandboxes: items, nextPageToken };
    },

    async destroySandbox({ sandboxId }) {
      world.destroySandbox(world.sandbox(sandboxId));
      return {};
    },

    async updatePermissions({ sandboxId, permissions }) {
      const sandbox = world.sandbox(sandboxId);
      sandbox.setPermissions(permissions);
      return sandbox.message;
    },

    async updateNetwork({ sandboxId, networkRules }) {
      const { message } = world.sandbox(sandboxId);
      if (message.network !== NetworkMode.FILTERED) throw invalid("this network has no list of hosts; filtered has");
      message.networkRules = networkRules;
      return message;
    },

    async updateExpiry({ sandboxId, expiresIn, extendOnly }) {
      const { message } = world.sandbox(sandboxId);
      if (expiresIn === undefined) throw invalid("expires_in is required");
      const inMs = Date.now() + durationMs(expiresIn);
      const beforeMs = message.expiresAt ? timestampMs(message.expiresAt) : Number.POSITIVE_INFINITY;
      if (!extendOnly || beforeMs < inMs) message.expiresAt = timestampFromMs(inMs);
      return message;
    },

    async explainPath({ sandboxId, path }) {
      const { policy, message } = world.sandbox(sandboxId);
      const at = workspacePath(path);
      const { level, reason, candidates } = policy.explain(at);
      const told = candidates.map((one) => ({ ...one, index: one.rule, rule: message.permissions[one.rule]! }));
      const deciding = told.find(({ lostBy }) => lostBy === undefined);
      return {
        path: at,
        permission: PERMISSIONS[level],
        ...(deciding === undefined ? {} : { deciding }),
        losing: told.filter(({ lostBy }) => lostBy !== undefined),
        explanation: `${at} is ${level}: ${reason}`,
      };
    },
  };
}

function commandHandlers(world: World): Handlers<typeof SandboxService> {
  const run = (request: ExecRequest, signal: AbortSignal, stdin?: MockRun["stdin"]) => {
    const sandbox = world.sandbox(request.sandboxId);
    const { command: line, argv, env, stdin: text, stdinBytes } = request;
    const command = argv.length > 0 ? argv : line;
    checkCommand(command);
    return world.commands.run({
      ...{ sandbox, command, env, signal },
      ended: sandbox.requireAwake(),
      workdir: workingDirectory(sandbox, request.workdir),
      stdin: stdin ?? (text === "" ? stdinBytes : Buffer.from(text)),
      timeoutMs: timeoutOf(request.timeout),
      timeoutSignal: "SIGKILL",
    });
  };
  const runInSession = ({ sessionId, command, timeout }: SessionExecRequest, signal: AbortSignal) =>
    world.session(sessionId).exec({ command, timeoutMs: timeoutOf(timeout), signal });

  return {
    exec: async (request, signal) => resultOf(await run(request, signal)),

    async *execStream(request, signal) {
      yield* outputsOf(await run(request, signal));
    },

    async *execInteractive(requests, signal) {
      const inputs = requests[Symbol.asyncIterator]();
      const { value } = await inputs.next();
      if (value?.input.case !== "start") throw invalid("start must be sent first");
      yield* outputsOf(await run(value.input.value, signal, typed(inputs)));
    },

    createSession: async (request) => world.openSession(request).message,

    getSession: async ({ sessionId }) => world.session(sessionId).message,

    listSessions: async ({ sandboxId }) => ({ sessions: world.sessionsOf(sandboxId).map(({ message }) => message) }),

    async destroySession({ sessionId }) {
      world.session(sessionId).close("closed");
      world.sessions.delete(sessionId);
      return {};
    },

    sessionExec: async (request, signal) => resultOf(await runInSession(request, signal)),

    async *sessionExecStream(request, signal) {
      yield* outputsOf(await runInSession(request, signal));
    },
  };
}

const DEFAULT_TIMEOUT_MS = 30_000;

function timeoutOf(duration: Duration | undefined): number {
  return (duration && durationMs(duration)) || DEFAULT_TIMEOUT_MS;
}

/** Bytes after the first message, until the client says that they end. */
async function* typed(inputs: AsyncIterator<ExecInput>): AsyncGenerator<Uint8Array> {
  for (let next = await inputs.next(); next.done !== true; next = await inputs.next()) {
    const { input } = next.value;
    if (input.case === "end") return;
    if (input.case === "stdin") yield input.value;
  }
}

function endOf({ exitCode, signal, timedOut, durationMs: ms, syncedVersion, syncProblems }: Outcome) {
  return { exitCode, signal, timedOut, duration: durationFromMs(Math.round(ms)), syncedVersion, syncProblems };
}

/** The result, or the error that a timeout is for callers of a single answer. */
function resultOf(outcome: Outcome): MessageInitShape<typeof ExecResultSchema> {
  const { stdout, stderr } = outcome;
  const value = { ...endOf(outcome), stdout, stderr };
  if (!outcome.timedOut) return value;
  throw new Fault("COMMAND_TIMEOUT", "command timed out", { detail: { desc: ExecResultSchema, value } });
}

function* outputsOf(outcome: Outcome): Generator<MessageInitShape<typeof ExecOutputSchema>> {
  for (const data of pieces(Buffer.from(outcome.stdout))) yield { type: ExecOutput_OutputType.STDOUT, data };
  for (const data of pieces(Buffer.from(outcome.stderr))) yield { type: ExecOutput_OutputType.STDERR, data };
  yield endOf(outcome);
}

function changeHandlers(world: World): Handlers<typeof SandboxService> {
  return {
    async listChanges({ sandboxId, ...page }) {
      const { items, nextPageToken } = pageOf(listChanges(world.sandbox(sandboxId)), page);
      return { changes: items, nextPageToken };
    },

    async *diffChanges({ sandboxId, paths, patch }) {
      yield* diffChanges(world.sandbox(sandboxId), paths, { patch });
    },

    async applyChanges({ sandboxId, paths, dryRun, holdExecutables }) {
      return applyChanges(world.sandbox(sandboxId), paths, { dryRun, holdExecutables });
    },

    async discardChanges({ sandboxId, paths }) {
      const sandbox = world.sandbox(sandboxId);
      const discarded = listChanges(sandbox, paths);
      for (const { path } of selectedChanges(sandbox, paths)) sandbox.overlay.forget(path);
      if (discarded.length > 0) sandbox.tell("changes_discarded", { data: { changes: discarded.length, kept: 0 } });
      return { discarded };
    },
  };
}

/** Files of a running sandbox, as a process inside sees them. A refusal is told with the path as the caller gave it. */
function fileHandlers(world: World): Handlers<typeof SandboxService> {
  const running = (sandboxId: string): MockSandbox => {
    const sandbox = world.sandbox(sandboxId);
    sandbox.requireRunning();
    return sandbox;
  };
  const changed = (sandbox: MockSandbox, type: string, path: string, work: () => ViewEntry) => {
    const entry = answered(path, work);
    syncAfterCommand(sandbox);
    sandbox.tell(type, { data: { path: insidePath(workspacePath(path)), size: entry.size } });
    return infoMessage(entry, path);
  };

  return {
    async *readFile({ sandboxId, path }) {
      const { view } = running(sandboxId);
      for (const data of pieces(answered(path, () => view.read(workspacePath(path))))) yield { data };
    },

    async writeFile(requests) {
      const { metadata, data } = await receive(requests);
      const { sandboxId, path, mode, append } = metadata;
      const sandbox = running(sandboxId);
      const options = { append, ...(mode === 0 ? {} : { mode: mode & 0o777 }) };
      const at = notRoot(workspacePath(path));
      return changed(sandbox, "file_written", path, () => sandbox.view.write(at, data, options));
    },

    async listDirectory({ sandboxId, path, recursive }) {
      const { view } = running(sandboxId);
      const entries = answered(path, () => view.list(workspacePath(path), { recursive }));
      return { files: entries.map((entry) => infoMessage(entry, path)) };
    },

    async statFile({ sandboxId, path }) {
      const { view } = running(sandboxId);
      return infoMessage(
        answered(path, () => view.stat(workspacePath(path))),
        path,
      );
    },

    async makeDirectory({ sandboxId, path, recursive }) {
      const sandbox = running(sandboxId);
      const at = notRoot(workspacePath(path));
      return changed(sandbox, "directory_created", path, () => sandbox.view.makeDirectory(at, { recursive }));
    },

    async removeFile({ sandboxId, path, recursive }) {
      const sandbox = running(sandboxId);
      const at = notRoot(workspacePath(path));
      answered(path, () => sandbox.view.remove(at, { recursive }));
      syncAfterCommand(sandbox);
      sandbox.tell("file_removed", { data: { path: insidePath(at) } });
      return {};
    },

    async moveFile({ sandboxId, fromPath, toPath }) {
      const sandbox = running(sandboxId);
      const from = notRoot(workspacePath(fromPath, "from_path"), "from_path");
      const to = notRoot(workspacePath(toPath, "to_path"), "to_path");
      return changed(sandbox, "file_moved", toPath, () => sandbox.view.move(from, to));
    },
  };
}

/** Paths begin as the request's path did. */
function infoMessage(entry: ViewEntry, asked: string): MessageInitShape<typeof FileInfoSchema> {
  return {
    path: asked.startsWith("/") ? entry.path : entry.path.slice(1),
    name: nameOf(entry.path),
    isDir: entry.kind === "directory",
    size: BigInt(entry.size),
    modifiedAt: timestampFromMs(entry.modifiedAtMs),
    mode: entry.mode,
    symlinkTarget: entry.target,
    permission: PERMISSIONS[entry.permission],
  };
}
