import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import type { Socket } from "node:net";
import { basename } from "node:path";
import type { Rule } from "@agentfense/permission";
import { type Backend, type BackendName, type Box, HOME, type ResourceUsage } from "../backend/backend.ts";
import type { DescriptorRoom } from "../backend/descriptor-room.ts";
import { IsolationError, notRunning, throwIfCancelled } from "../backend/isolation-error.ts";
import { type DiscardReport, discardChanges } from "../changes/discard.ts";
import { settleChanges } from "../changes/settle.ts";
import type { OpenRequest } from "../code/contexts.ts";
import { Contexts } from "../code/contexts.ts";
import { type Interpreter, KERNELS, Kernel } from "../code/kernel.ts";
import { ShellInterpreter } from "../code/shell-interpreter.ts";
import {
  type Cancellable,
  type ExecEvent,
  type ExecOutcome,
  type ExecRequest,
  type ExecResult,
  type LimitEvent,
  outcomeOf,
} from "../exec/api.ts";
import { execute, executeStream, type PlannedExec } from "../exec/execute.ts";
import {
  checkStartTerms,
  commandArguments,
  effectiveTimeout,
  type TimeLimits,
  workingDirectory,
} from "../exec/request.ts";
import { homeIn, treeIn } from "../filesystem/delta.ts";
import type { Frozen } from "../filesystem/freezing.ts";
import type { SettledEntry } from "../filesystem/settlement.ts";
import type { Instance } from "../instance/instance.ts";
import type { JoinedMount, MountHost, WorkspaceEvent, WorkspaceMount } from "../mount/host.ts";
import type { FilteredNetwork } from "../network/filtered.ts";
import { NetworkPolicy, type NetworkRule } from "../network/policy.ts";
import type { SecretWithValue } from "../network/secrets.ts";
import type { BoxSession, SessionRequest } from "../session/api.ts";
import { type SessionOptions, ShellSession } from "../session/session.ts";
import { MountedFiles } from "../view/files.ts";
import type { KernelWatch } from "../view/kernel-watch.ts";
import type { ViewThread } from "../view/thread.ts";
import { Queue } from "../waiting.ts";
import type {
  BoxedWorkspace,
  FreezeRequest,
  SandboxEvent,
  SandboxSpec,
  Terminal,
  TerminalRequest,
  WorkspaceSpecification,
} from "./api.ts";
import { Connections } from "./connections.ts";
import { Processes, signaller } from "./processes.ts";
import { mountsOf, targetOf } from "./specification.ts";

const DEFAULT_OUTPUT_BYTES = 10 * 1024 * 1024;

export interface SandboxParts {
  readonly id: string;
  readonly spec: SandboxSpec;
  readonly backend: Backend;
  readonly box: Box;
  /** The network of a sandbox whose network is filtered. */
  readonly network: FilteredNetwork | undefined;
  readonly mountPoint: string;
  readonly mounts: MountHost | undefined;
  readonly view: ViewThread;
  readonly kernelWatch: KernelWatch;
  readonly instance: Instance;
  readonly timeLimits: TimeLimits;
  readonly connectionRoom: DescriptorRoom;
  /** For the processes that outlive their call. */
  readonly descriptors: DescriptorRoom;
  readonly onDestroyed: () => void;
}

/**
 * One sandbox of any backend: its workspaces mounted, its box around its processes. Start, pause and destroy take turns;
 * commands run side by side in between. It has one life, and no states to disagree about with whoever owns it: either it runs
 * or not, and whether it is paused the box knows.
 */
export class GuardedBox implements BoxedWorkspace {
  readonly id: string;
  readonly runtime: BackendName;
  readonly files: MountedFiles;
  readonly processes: Processes;
  readonly contexts: Contexts;
  readonly #parts: SandboxParts;
  readonly #spec: SandboxSpec;
  readonly #box: Box;
  /** The mounts of the workspaces in their order, and of the home; none while it does not run. */
  #mounts: readonly WorkspaceMount[] = [];
  readonly #sessions = new Set<ShellSession>();
  readonly #connections: Connections;
  /** What the delta lies on by now, if it was frozen in this life. */
  #beneath: readonly string[] | undefined;
  /** Those in force in the first workspace. */
  #rules: readonly Rule[];
  /** The workspaces are mounted, and the box takes commands. */
  #isRunning = false;
  #started: Promise<void> | undefined;
  #destroyed: Promise<void> | undefined;
  /** Start, pause and destroy take turns. */
  readonly #turns = new Queue();
  /** Aborts sessions and connections in the making when somebody destroys the sandbox. */
  readonly #ending = new AbortController();

  constructor(parts: SandboxParts) {
    this.id = parts.id;
    this.runtime = parts.backend.name;
    this.#parts = parts;
    this.#spec = parts.spec;
    this.#box = parts.box;
    this.#connections = new Connections(parts.connectionRoom);
    let lastNumber = 0;
    this.processes = new Processes({
      box: parts.box,
      descriptors: parts.descriptors,
      nextNumber: parts.spec.nextProcessNumber ?? (() => ++lastNumber),
      plan: async ({ stdin = false, ...request }) => ({ ...(await this.#plan(request)).command, stdin }),
      onOutcome: (outcome, timeoutMs) => this.#reportLimits(outcome, { timeoutMs }),
    });
    this.contexts = new Contexts({
      workdir: (asked) => this.#workdir(asked),
      admit: () => this.#requireRunning(),
      open: (request, options) => this.#openInterpreter(request, options),
      onOutcome: (outcome, timeoutMs) => this.#reportLimits(outcome, { timeoutMs, outputBytes: this.#outputBytes }),
    });
    this.#rules = this.#first.rules;
    this.files = new MountedFiles({
      thread: parts.view,
      mount: () => {
        this.#requireMounted();
        return this.#mounts[0];
      },
      target: this.#workspace,
      kernelWatch: parts.kernelWatch,
      rules: () => this.#rules,
    });
  }

  get isPaused(): boolean {
    return this.#isRunning && this.#box.isPaused;
  }

  start(options: Cancellable = {}): Promise<void> {
    this.#started ??= this.#start(options.signal);
    return this.#started;
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#turns.run(async () => {
        this.#ending.signal.throwIfAborted();
        throwIfCancelled(signal);
        const mounted = this.#mountAll();
        const started = this.#box.start({ signal, mounted });
        await Promise.allSettled([mounted, started]); // whichever fails, the other is over when the sandbox is taken away
        await (await mounted).served;
        await started;
        throwIfCancelled(signal);
        this.#isRunning = true;
      });
    } catch (error) {
      await this.destroy().catch(() => {}); // why it did not start is told
      throw error;
    }
  }

  async exec(request: ExecRequest, options: Cancellable = {}): Promise<ExecResult> {
    const plan = await this.#plan(request);
    const result = await this.#explain(execute(this.processes.listing(request.command), plan, options.signal));
    this.#reportLimits(result, plan);
    return result;
  }

  async *execStream(request: ExecRequest, options: Cancellable = {}): AsyncGenerator<ExecEvent> {
    const plan = await this.#plan(request);
    for await (const event of executeStream(this.processes.listing(request.command), plan, options.signal)) {
      if (event.kind === "exit") this.#reportLimits(event.outcome, plan);
      yield event;
    }
  }

  async session(request: SessionRequest = {}, options: Cancellable = {}): Promise<BoxSession> {
    this.#requireRunning();
    checkStartTerms(request);
    const { timeLimits } = this.#parts;
    const onEvent = (event: LimitEvent): void => this.#spec.onEvent?.(event);
    const session = await this.#openShell(request, { ...options, timeLimits, onEvent });
    if (session.closed === undefined) {
      this.#sessions.add(session);
      this.processes.list({ kind: "session", command: [session.shell] }, session.ended, (number) =>
        session.signal(number),
      );
    }
    // An end that came while the shell started may have missed it.
    if (!this.#isRunning) {
      await session.close();
      this.#requireMounted();
    }
    return session;
  }

  async #openShell(
    request: SessionRequest,
    {
      timeLimits = {},
      onEvent,
      ...options
    }: Cancellable & Pick<SessionOptions, "onEvent"> & { timeLimits?: TimeLimits },
  ): Promise<ShellSession> {
    const session: ShellSession = await this.#explain(
      ShellSession.open(
        {
          box: this.#box,
          id: `sess_${randomBytes(16).toString("hex")}`,
          request,
          env: request.env ?? {},
          workdir: this.#workdir(request.workdir),
          defaults: { timeLimits, outputBytes: this.#outputBytes },
          admit: () => this.#requireRunning(),
          onEvent,
          onClosed: () => this.#sessions.delete(session),
        },
        { signal: this.#unlessEnding(options) },
      ),
    );
    return session;
  }

  async #openInterpreter({ language, env, workdir }: OpenRequest, options: Cancellable): Promise<Interpreter> {
    let interpreter: Interpreter;
    if (language === "bash") {
      const session = await this.#openShell({ shell: "bash", env, workdir }, options);
      if (session.closed === undefined) this.#sessions.add(session);
      interpreter = new ShellInterpreter(session, this.#outputBytes);
    } else {
      if (this.runtime === "mock") throw new IsolationError("RUNTIME_UNAVAILABLE", "the mock runtime runs no code");
      const program = KERNELS[language === "python" ? "python" : "javascript"];
      const opening = { box: this.#box, program, env, workdir, outputBytes: this.#outputBytes };
      interpreter = await this.#explain(Kernel.open(opening, { signal: this.#unlessEnding(options) }));
    }
    const ended = interpreter.ended.then(() => undefined);
    this.processes.list({ kind: "context", command: [interpreter.name] }, ended, (number) =>
      interpreter.signal(number),
    );
    // An end that came while it started may have missed it.
    if (!this.#isRunning) {
      await interpreter.close();
      this.#requireMounted();
    }
    return interpreter;
  }

  async terminal(request: TerminalRequest, options: Cancellable = {}): Promise<Terminal> {
    this.#requireRunning();
    checkStartTerms({ ...request, command: request.argv });
    const startedAtMs = performance.now();
    const shell = await this.#shell();
    const argv = request.argv === undefined ? ([shell] as const) : commandArguments(request.argv, shell);
    const { env = {} } = request;
    const workdir = this.#workdir(request.workdir);
    const opened = this.#box.openTerminal({ argv, env, workdir, size: request.size }, { signal: options.signal });
    const terminal = await this.#explain(opened);
    const kill = (): void => terminal.kill();
    options.signal?.addEventListener("abort", kill);
    const exit = terminal.exit
      .then((end) => outcomeOf(end, { durationMs: performance.now() - startedAtMs }))
      .finally(() => options.signal?.removeEventListener("abort", kill));
    exit.catch(() => {}); // awaited by whoever cares
    this.processes.list({ kind: "terminal", command: request.argv ?? argv }, exit, signaller(terminal));
    return {
      input: terminal.input,
      output: terminal.output,
      exit,
      resize: (size) => terminal.resize(size),
      kill,
      [Symbol.asyncDispose]: async () => {
        kill();
        await exit.catch(() => {});
      },
    };
  }

  async connect(port: number, options: Cancellable = {}): Promise<Socket> {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new IsolationError("INVALID_ARGUMENT", `a port is a number from 1 to 65535, not ${port}`);
    }
    this.#requireRunning();
    const signal = this.#unlessEnding(options);
    return await this.#explain(this.#connections.add(() => this.#box.connect(port, { signal })));
  }

  updateRules(rules: readonly Rule[]): Promise<void> {
    return this.#turns.run(async () => {
      await this.#mounts[0]?.updateRules(rules);
      this.#rules = rules;
      this.files.rulesChanged();
    });
  }

  async updateNetwork(rules: readonly NetworkRule[]): Promise<void> {
    const { network } = this.#parts;
    if (network === undefined)
      throw new IsolationError("INVALID_ARGUMENT", "only a filtered network has a list of hosts");
    await network.update(NetworkPolicy.of(rules));
  }

  async renewSecret(name: string, secret: SecretWithValue | undefined): Promise<boolean> {
    return (await this.#parts.network?.renewSecret(name, secret)) ?? false;
  }

  codebaseChanged(paths: readonly string[]): Promise<readonly string[]> {
    // Without a mount nothing is remembered.
    return this.#turns.run(async () => (await this.#mounts[0]?.codebaseChanged(paths)) ?? []);
  }

  lookAgain(): Promise<void> {
    return this.#turns.run(async () => this.#mounts[0]?.lookAgain());
  }

  settle(entries: readonly SettledEntry[]): Promise<readonly string[]> {
    return this.#turns.run(async () => {
      const { delta, lowers } = this.#first;
      if (delta === undefined || entries.length === 0) return [];
      const [mount] = this.#mounts;
      return mount === undefined ? await settleChanges({ delta, lowers, entries }) : await mount.settle(entries);
    });
  }

  discard(paths: readonly string[] | undefined): Promise<DiscardReport> {
    return this.#turns.run(async () => {
      const { delta } = this.#first;
      if (delta === undefined) return { discarded: [], failed: [] };
      const [mount] = this.#mounts;
      if (mount === undefined) return await discardChanges({ delta, paths });
      const report = await mount.discard(paths);
      this.files.changedOutside(report.discarded);
      return report;
    });
  }

  freeze({ layer }: FreezeRequest): Promise<Extract<Frozen, { outcome: "frozen" }>> {
    return this.#turns.run(async () => {
      this.#requireMounted();
      const { delta, beneath = [] } = this.#first;
      const [mount] = this.#mounts;
      if (delta === undefined || mount === undefined) {
        throw new IsolationError("INVALID_ARGUMENT", "there is nothing that could be frozen");
      }
      const beneathIt = [layer, ...(this.#beneath ?? beneath)];
      const home = this.#spec.home === undefined ? this.#mounts.length - 1 : undefined;
      const spec = { delta, layer, beneath: beneathIt.map((each) => basename(each)), trees: { tree: 0, home } };
      let frozen = await mount.freeze({ ...spec, still: this.#box.isPaused });
      if (frozen.outcome === "writing") frozen = await this.#held(() => mount.freeze({ ...spec, still: true }));
      if (frozen.outcome === "writing") throw new Error("a file was opened while everything was held still");
      this.#beneath = beneathIt;
      return frozen;
    });
  }

  /** With every process of the box held still. */
  async #held<T>(work: () => Promise<T>): Promise<T> {
    await this.#box.pause();
    try {
      return await work();
    } finally {
      await this.#box.resume();
    }
  }

  async usage(): Promise<ResourceUsage> {
    this.#requireMounted();
    return await this.#box.usage();
  }

  pause(): Promise<void> {
    return this.#turns.run(async () => {
      this.#requireMounted();
      await this.#box.pause();
    });
  }

  resume(): Promise<void> {
    return this.#turns.run(async () => {
      this.#requireMounted();
      await this.#box.resume();
    });
  }

  destroy(): Promise<void> {
    this.#ending.abort(new IsolationError("SANDBOX_NOT_RUNNING", "the sandbox was stopped"));
    this.#destroyed ??= this.#turns.run(() => this.#end());
    return this.#destroyed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  /** The workspace that commands start in, and whose files, rules and changes are the sandbox's. */
  get #first(): WorkspaceSpecification {
    return this.#spec.workspaces[0]!;
  }

  get #workspace(): string {
    return targetOf(this.#first);
  }

  get #outputBytes(): number {
    return this.#spec.limits?.outputBytes ?? DEFAULT_OUTPUT_BYTES;
  }

  #workdir(asked: string | undefined): string {
    return workingDirectory(asked, this.#spec.workspaceHome ?? this.#workspace);
  }

  /** The caller's signal, or that somebody destroys the sandbox. */
  #unlessEnding({ signal }: Cancellable): AbortSignal {
    return AbortSignal.any([this.#ending.signal, ...(signal === undefined ? [] : [signal])]);
  }

  async #shell(): Promise<string> {
    const [shell] = await this.#box.shells();
    if (shell === undefined) throw new IsolationError("PROGRAM_NOT_FOUND", "there is no shell in the sandbox");
    return shell;
  }

  async #plan(request: ExecRequest): Promise<PlannedExec> {
    this.#requireRunning();
    checkStartTerms(request);
    return {
      command: {
        argv: commandArguments(request.command, await this.#shell()),
        env: request.env ?? {},
        workdir: this.#workdir(request.workdir),
        stdin: request.stdin !== undefined,
      },
      stdin: request.stdin,
      timeoutMs: effectiveTimeout(request.timeoutMs, this.#parts.timeLimits),
      outputBytes: this.#outputBytes,
    };
  }

  /** What failed because the sandbox was stopped meanwhile is told as that. */
  async #explain<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof IsolationError && error.code === "CANCELLED")) this.#requireMounted();
      throw error;
    }
  }

  #reportLimits(outcome: ExecOutcome, plan: Pick<PlannedExec, "timeoutMs"> & Partial<PlannedExec>): void {
    const report = (limit: "memory" | "time" | "output", detail: string): void =>
      this.#spec.onEvent?.({ kind: "resource_limit_exceeded", limit, detail });
    if (outcome.outOfMemory) report("memory", "the memory limit killed a process");
    if (outcome.timedOut) report("time", `a command was killed after ${plan.timeoutMs} ms`);
    if (outcome.truncated) report("output", `output beyond ${plan.outputBytes} bytes was dropped`);
  }

  async #mountAll(): Promise<Pick<JoinedMount, "served">> {
    const { mounts, mountPoint } = this.#parts;
    if (mounts === undefined) return { served: Promise.resolve() };
    const { diskBytes, diskFiles } = this.#spec.limits ?? {};
    const workspaces = mountsOf(this.#spec);
    const frozen = await Promise.all(workspaces.map(frozenIn));
    const { trees, served } = await mounts.mountTogether({
      mountPoint,
      quota: { bytes: diskBytes, files: diskFiles },
      usedBeneath: this.#spec.usedBeneath,
      owner: this.#box.owner,
      trees: workspaces.map((workspace, index) => ({
        ...workspace,
        frozen: frozen[index]!,
        rules: index === 0 ? this.#rules : workspace.rules,
        onEvent: (event) => this.#onWorkspaceEvent(event, targetOf(workspace)),
      })),
    });
    this.#mounts = trees;
    return { served };
  }

  #onWorkspaceEvent(event: WorkspaceEvent, target: string): void {
    // Paths of events are those of the workspace; one of the home is told as the shell would write it.
    const told = target === HOME && "path" in event ? { ...event, path: `~${event.path}` } : event;
    this.#spec.onEvent?.(told satisfies SandboxEvent);
    // A workspace is gone under the sandbox: nothing in it can be trusted to work.
    if (event.kind === "mount_lost") this.destroy().catch(() => {});
  }

  /** Processes first, then the file systems they use; every step is tried, the first failure is told. */
  async #end(): Promise<void> {
    this.#isRunning = false;
    const failures: unknown[] = [];
    const attempt = async (work: () => Promise<unknown>): Promise<void> => {
      await work().catch((error: unknown) => failures.push(error));
    };
    // The sessions are told first, so that they know their end for what it is.
    const sessions = [...this.#sessions].map((session) => session.end("stopped"));
    this.#connections.cut();
    await attempt(() => this.#box.destroy());
    for (const ended of sessions) await attempt(() => ended);
    await attempt(() => this.contexts.close());
    this.#sessions.clear();
    await attempt(() => this.files.close());
    await Promise.all(this.#mounts.map((mount) => attempt(() => mount.unmount())));
    this.#mounts = [];
    await attempt(() => this.#parts.instance.removeMountPoint(this.id));
    this.#parts.onDestroyed();
    if (failures.length > 0) throw failures[0];
  }

  #requireRunning(): void {
    this.#requireMounted();
    if (this.#box.isPaused)
      throw new IsolationError("SANDBOX_PAUSED", "the sandbox is paused", { hint: "resume it first" });
  }

  #requireMounted(): void {
    if (!this.#isRunning) throw notRunning();
  }
}

/** The directories of the layers that a workspace shows: of a home, those of homes. */
async function frozenIn({ beneath = [], lowers }: WorkspaceSpecification): Promise<readonly string[]> {
  if (lowers.length > 0) return beneath.map(treeIn);
  const homes = await Promise.all(beneath.map((layer) => readdir(homeIn(layer)).catch(() => undefined)));
  // Some were frozen with a home that is not the delta's.
  return beneath.map(homeIn).filter((_, index) => homes[index] !== undefined);
}
