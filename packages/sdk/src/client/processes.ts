import {
  type Process,
  type ProcessOutput,
  ProcessState,
  SandboxService,
  ProcessOutput_OutputType as Type,
} from "@agentfense/protocol/sandbox";
import { ConnectionError } from "../errors.ts";
import { type MembersOf, requireKnownMembers } from "../model/known-members.ts";
import type { CallOptions, Command } from "../model/options.ts";
import type { ProcessEnd, ProcessEvent, ProcessInfo } from "../model/records.ts";
import type { AttachOptions, SpawnOptions, TerminalSize } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { pieces } from "./content.ts";
import { commandMembers, commandText } from "./messages/command.ts";
import { dateOf, datesOf, numberOf, PROCESS_KINDS, uint32Of, wordOf } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;
const KINDS = {
  [Type.UNSPECIFIED]: "stdout",
  [Type.STDOUT]: "stdout",
  [Type.STDERR]: "stderr",
  [Type.TERMINAL]: "terminal",
} as const;

const SPAWNING: MembersOf<SpawnOptions> = {
  ...{ tag: true, env: true, workdir: true, stdin: true, terminal: true, timeoutMs: true, signal: true },
};

/** Processes that outlive their call. Each is known by its number, or by its tag. */
export class ProcessCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async start(sandboxId: string, command: Command, options: SpawnOptions = {}): Promise<ProcessInfo> {
    requireKnownMembers(options, SPAWNING, "the options of a process");
    const { tag = "", stdin = false, terminal, signal, ...rest } = options;
    const request = {
      ...commandMembers(sandboxId, command, rest),
      tag,
      stdin,
      ...(terminal === undefined ? {} : { terminal: sizeMessage(terminal) }),
    };
    return processOf(await this.#rpc.unary(method.startProcess, request, { signal }));
  }

  async list(sandboxId: string, options?: CallOptions): Promise<ProcessInfo[]> {
    const { processes } = await this.#rpc.unary(method.listProcesses, { sandboxId }, options);
    return processes.map(processOf);
  }

  /** Resolves when the server has attached the caller. */
  async attach(
    sandboxId: string,
    which: number | string,
    { skipKept = false, signal }: AttachOptions = {},
  ): Promise<CallStream<ProcessEvent>> {
    const request = { ...requestOf(sandboxId, which), skipKept };
    const outputs = this.#rpc.serverStream(method.attachProcess, request, { signal });
    const { done } = await outputs.next();
    if (done === true) throw endedEarly();
    return outputs.map(eventOf, { isLast: ({ kind }) => kind === "exit", early: endedEarly });
  }

  async sendInput(
    sandboxId: string,
    which: number | string,
    data: string | Uint8Array,
    options?: CallOptions,
  ): Promise<void> {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    const request = requestOf(sandboxId, which);
    for (const piece of pieces(bytes)) {
      await this.#rpc.unary(method.sendInput, { ...request, data: piece }, { ...options, ...UNTIL_IT_IS_SO });
    }
  }

  async closeInput(sandboxId: string, which: number | string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.closeInput, requestOf(sandboxId, which), options);
  }

  async signal(
    sandboxId: string,
    which: number | string,
    signal: string | number,
    options?: CallOptions,
  ): Promise<void> {
    const request = { ...requestOf(sandboxId, which), signal: String(signal) };
    await this.#rpc.unary(method.signalProcess, request, options);
  }

  async resize(sandboxId: string, which: number | string, size: TerminalSize, options?: CallOptions): Promise<void> {
    const request = { ...requestOf(sandboxId, which), size: sizeMessage(size) };
    await this.#rpc.unary(method.resizeProcess, request, options);
  }

  async wait(sandboxId: string, which: number | string, options?: CallOptions): Promise<ProcessInfo> {
    const request = requestOf(sandboxId, which);
    return processOf(await this.#rpc.unary(method.waitProcess, request, { ...options, ...UNTIL_IT_IS_SO }));
  }
}

/** A process may live for days, and read its input when it likes. */
const UNTIL_IT_IS_SO = { timeoutMs: Number.POSITIVE_INFINITY };

function requestOf(sandboxId: string, which: number | string) {
  return { sandboxId, ...(typeof which === "number" ? { number: uint32Of(which, "number") } : { tag: which }) };
}

function sizeMessage({ columns, rows }: TerminalSize) {
  return { columns: uint32Of(columns, "columns"), rows: uint32Of(rows, "rows") };
}

function processOf(message: Process): ProcessInfo {
  const { number, sandboxId, tag, ownerId, command, argv, exitCode } = message;
  return {
    ...{ number, sandboxId, tag, ownerId },
    kind: wordOf(PROCESS_KINDS, message.kind, "kind of a process"),
    command: argv.length === 0 ? command : commandText(argv as [string, ...string[]]),
    state: message.state === ProcessState.ENDED ? "ended" : "running",
    startedAt: dateOf(message.startedAt),
    ...datesOf({ endedAt: message.endedAt }),
    ...(exitCode === undefined ? {} : { end: endOf({ ...message, exitCode }) }),
  };
}

function eventOf(message: ProcessOutput): ProcessEvent {
  const { exitCode, type, data, lostBytes } = message;
  if (exitCode !== undefined) return { kind: "exit", end: endOf({ ...message, exitCode }) };
  return { kind: KINDS[type], data, lostBytes: numberOf(lostBytes) };
}

function endOf(message: Pick<ProcessOutput, "signal" | "timedOut" | "outOfMemory"> & { exitCode: number }): ProcessEnd {
  const { exitCode, signal, timedOut, outOfMemory } = message;
  return { exitCode, signal: signal === "" ? undefined : signal, timedOut, outOfMemory };
}

function endedEarly(): ConnectionError {
  return new ConnectionError("the server did not say how the process ended", { code: "CONNECTION_FAILED" });
}
