import type {
  Process,
  ProcessOutputSchema,
  ProcessRequest,
  ProcessSchema,
  TerminalInput,
  TerminalSize,
} from "@agentfense/protocol/sandbox";
import { ProcessState, ProcessOutput_OutputType as Type } from "@agentfense/protocol/sandbox";
import { PROCESS_KINDS } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ExecOutcome, Sandboxes, SandboxProcess, TerminalHandle } from "../../runtime/sandboxes/api.ts";
import type { Call, SandboxHandlers } from "./handlers.ts";
import { commandOf } from "./messages/exec.ts";
import { durationMs, given, invalid, required, timestampMessage } from "./messages/fields.ts";
import { chunked, pieces, readFirst, unread } from "./streams.ts";

const TYPES = { stdout: Type.STDOUT, stderr: Type.STDERR, terminal: Type.TERMINAL } as const;

export function processHandlers(sandboxes: Sandboxes) {
  const of = ({ sandboxId }: Pick<ProcessRequest, "sandboxId">, { caller }: Call) =>
    sandboxes.processes(caller, sandboxId);
  const one = async (request: Pick<ProcessRequest, "sandboxId" | "number" | "tag">, call: Call) => {
    const which = whichOf(request);
    return { which, processes: await of(request, call) };
  };
  return {
    async startProcess(request, call) {
      const { sandboxId, env, workdir, tag, stdin, terminal, timeout } = request;
      const command = commandOf(request);
      const optional = given({ terminal: terminal && sizeOf(terminal), timeoutMs: durationMs(timeout, "timeout") });
      const processes = await of(request, call);
      const { signal } = call;
      const process = await processes.spawn({ command, env, workdir, tag, stdin, signal, ...optional });
      return processMessage(process, sandboxId, processes.ownerId);
    },

    async listProcesses(request, call) {
      const processes = await of(request, call);
      return { processes: processes.list().map((each) => processMessage(each, request.sandboxId, processes.ownerId)) };
    },

    async *attachProcess(request, call) {
      const { which, processes } = await one(request, call);
      for await (const event of processes.attach(which, { signal: call.signal, skipKept: request.skipKept })) {
        if (event.kind === "attached") yield {};
        else if (event.kind === "exit") yield endMembers(event.outcome);
        else yield* outputMessages(TYPES[event.kind], event.data, event.lostBytes);
      }
    },

    async sendInput(request, call) {
      const { which, processes } = await one(request, call);
      await processes.write(which, request.data, { signal: call.signal });
    },

    async closeInput(request, call) {
      const { which, processes } = await one(request, call);
      await processes.closeInput(which);
    },

    async signalProcess(request, call) {
      required(request.signal, "signal");
      const { which, processes } = await one(request, call);
      await processes.signal(which, request.signal);
    },

    async resizeProcess(request, call) {
      if (request.size === undefined) throw invalid("size is required", { field: "size" });
      const size = sizeOf(request.size);
      const { which, processes } = await one(request, call);
      await processes.resize(which, size);
    },

    async waitProcess(request, call) {
      const { which, processes } = await one(request, call);
      const process = await processes.wait(which, { signal: call.signal });
      return processMessage(process, request.sandboxId, processes.ownerId);
    },
  } satisfies SandboxHandlers;
}

function whichOf({ number, tag }: Pick<ProcessRequest, "number" | "tag">): number | string {
  if (number > 0 && tag !== "") throw invalid("number and tag exclude each other");
  return number > 0 ? number : required(tag, "number or tag");
}

/** Data that was lost without anything after it is a message, too. */
function* outputMessages(
  type: Type,
  data: Uint8Array,
  lostBytes: number,
): Generator<MessageInitShape<typeof ProcessOutputSchema>> {
  let lost = BigInt(lostBytes);
  if (data.length === 0) yield { type, lostBytes: lost };
  for (const piece of pieces(data)) {
    yield { type, data: piece, lostBytes: lost };
    lost = 0n;
  }
}

function processMessage(
  process: SandboxProcess,
  sandboxId: string,
  ownerId: string,
): MessageInitShape<typeof ProcessSchema> {
  const { number, tag, kind, command, startedAtMs, endedAtMs, outcome } = process;
  return {
    ...{ number, sandboxId, tag, ownerId, kind: PROCESS_KINDS[kind] },
    ...(typeof command === "string" ? { command: clipped([command])[0]! } : { argv: clipped(command) }),
    startedAt: timestampMessage(startedAtMs),
    endedAt: timestampMessage(endedAtMs),
    state: outcome === undefined ? ProcessState.RUNNING : ProcessState.ENDED,
    ...(outcome === undefined ? {} : endMembers(outcome)),
  } satisfies Partial<Record<keyof Process, unknown>>;
}

/** A list of many processes has room for this much of each. */
const COMMAND_CHARACTERS = 512;

function clipped(words: readonly string[]): string[] {
  let room = COMMAND_CHARACTERS;
  return words.flatMap((word) => {
    if (room <= 0) return [];
    const kept = word.length <= room ? word : `${word.slice(0, room).toWellFormed()}…`;
    room -= word.length + 1;
    return [kept];
  });
}

function endMembers({ exitCode, signal = "", timedOut, outOfMemory }: ExecOutcome) {
  return { exitCode, signal, timedOut, outOfMemory };
}

const DEFAULT_SIZE = { columns: 80, rows: 24 };
/** The kernel's window size has 16 bits for each. */
const LARGEST_SIDE = 65_535;

export function terminalHandlers(sandboxes: Sandboxes) {
  return {
    async *openTerminal(requests, { caller, signal }) {
      const inputs = requests[Symbol.asyncIterator]();
      const { opening } = await readFirst(inputs, "open", ({ input }) =>
        input.case === "open" ? input.value : undefined,
      );
      const { sandboxId, argv, env, workdir, size } = opening;
      required(sandboxId, "sandbox_id", "in open");
      const request = { argv, env, workdir, size: sizeOf(size), signal };
      const terminal = await sandboxes.openTerminal(caller, sandboxId, request);
      const input = startInput(unread(inputs), terminal);
      try {
        for await (const data of chunked(terminal.output)) yield { data };
        const { exitCode } = await terminal.exit;
        if (input.fault === undefined) yield { exitCode };
      } catch (error) {
        if (input.fault === undefined) throw error;
      } finally {
        await terminal.close();
      }
      // What the client did wrong is the answer, however the terminal took its end.
      if (input.fault !== undefined) throw input.fault.error;
    },
  } satisfies SandboxHandlers;
}

interface InputState {
  /** The stream of inputs went wrong, and the terminal was closed for it. */
  fault: { readonly error: unknown } | undefined;
}

/** Types what arrives into the terminal, beside the output. An end of the input is no end of the terminal. */
function startInput(inputs: AsyncIterable<TerminalInput>, terminal: TerminalHandle): InputState {
  const state: InputState = { fault: undefined };
  let ended = false;
  const end = () => {
    ended = true;
  };
  terminal.exit.then(end, end);
  const pump = async () => {
    for await (const { input } of inputs) {
      if (input.case === "open") throw invalid("open already received");
      if (input.case === "data") await terminal.write(input.value);
      if (input.case === "resize") await terminal.resize(sizeOf(input.value));
    }
  };
  pump().catch(async (error: unknown) => {
    // Typing into a terminal that just ended fails, and is no fault of anybody.
    if (ended) return;
    state.fault = { error };
    // Its end shows in the output and the exit, which the loop above waits for.
    await terminal.close().catch(() => {});
  });
  return state;
}

function sizeOf(size: TerminalSize | undefined): { columns: number; rows: number } {
  const { columns, rows } = size ?? DEFAULT_SIZE;
  if (columns > LARGEST_SIDE || rows > LARGEST_SIDE)
    throw invalid(`a terminal has at most ${LARGEST_SIDE} columns and rows`);
  return { columns: columns === 0 ? DEFAULT_SIZE.columns : columns, rows: rows === 0 ? DEFAULT_SIZE.rows : rows };
}
