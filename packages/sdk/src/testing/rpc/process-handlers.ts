import {
  ProcessKind,
  type ProcessOutputSchema,
  type ProcessRequest,
  type ProcessSchema,
  ProcessState,
  ProcessOutput_OutputType as Type,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Fault, invalid } from "../faults.ts";
import { MockProcess, unsuitable } from "../sandboxes/process.ts";
import { checkCommand, checkEnvironment, workingDirectory } from "../sandboxes/requests.ts";
import type { MockSandbox } from "../sandboxes/sandbox.ts";
import type { World } from "../world.ts";
import { durationMs, required, timestampMessage } from "./fields.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";
import { pieces } from "./uploads.ts";

const TAG = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
const SIGNAL = /^((SIG)?[A-Z][A-Z0-9]{1,7}|[1-9]|[1-5][0-9]|6[0-4])$/i;

export function processHandlers(
  world: World,
): SandboxHandlers<
  | "startProcess"
  | "listProcesses"
  | "attachProcess"
  | "sendInput"
  | "closeInput"
  | "signalProcess"
  | "resizeProcess"
  | "waitProcess"
> {
  const tableOf = (sandboxId: string) => {
    const sandbox = world.sandbox(sandboxId);
    sandbox.requireRunning();
    return { sandbox, table: sandbox.processes };
  };
  const find = ({ sandboxId, number, tag }: Pick<ProcessRequest, "sandboxId" | "number" | "tag">): MockProcess => {
    const { table } = tableOf(sandboxId);
    if (number > 0 && tag !== "") throw invalid("number and tag exclude each other");
    if (number === 0) required(tag, "number or tag");
    const fitting = table.filter(({ facts }) => (number > 0 ? facts.number === number : facts.tag === tag));
    const found = fitting.findLast(({ end }) => end === undefined) ?? fitting.at(-1);
    if (found === undefined) throw new Fault("PROCESS_NOT_FOUND", `there is no process ${number || tag}`);
    return found;
  };
  return {
    async startProcess({ sandboxId, command, argv, env, workdir, tag, stdin, terminal, timeout }) {
      const { sandbox, table } = tableOf(sandboxId);
      if (argv.length > 0 && command !== "") throw invalid("command and argv exclude each other");
      const asked = argv.length > 0 ? argv : required(command, "command");
      if (tag !== "" && !TAG.test(tag)) throw invalid("a tag is a letter and then letters, digits, dots and the like");
      checkCommand(asked);
      checkEnvironment(env);
      workingDirectory(sandbox, workdir);
      const timeoutMs = durationMs(timeout, "timeout");
      const number = table.length + 1;
      const facts = { number, tag, command: asked, hasInput: stdin, isTerminal: terminal !== undefined };
      const { signal } = new AbortController(); // nobody's call ends it
      const process = new MockProcess(facts, (input, killed) =>
        world.commands.exec(
          sandbox,
          { command: asked, env, workdir, stdin: input, timeoutMs, signal },
          { number, killed },
        ),
      );
      table.push(process);
      sandbox.tell("process_started", { data: { command: textOf(asked), process: number, tag } });
      return messageOf(process, sandbox);
    },

    async listProcesses({ sandboxId }) {
      const { sandbox, table } = tableOf(sandboxId);
      const living = table.filter(({ end }) => end === undefined);
      const ended = table.filter(({ end }) => end !== undefined);
      return { processes: [...living, ...ended].map((process) => messageOf(process, sandbox)) };
    },

    async *attachProcess(request, signal): AsyncGenerator<MessageInitShape<typeof ProcessOutputSchema>> {
      const process = find(request);
      yield {};
      for await (const { kind, data } of process.attach(signal)) {
        const type = process.facts.isTerminal ? Type.TERMINAL : kind === "stdout" ? Type.STDOUT : Type.STDERR;
        for (const piece of pieces(data)) yield { type, data: piece };
      }
      if (process.end !== undefined) yield process.end;
    },

    async sendInput(request) {
      find(request).write(request.data);
      return {};
    },

    async closeInput(request) {
      find(request).closeInput();
      return {};
    },

    async signalProcess(request) {
      if (!SIGNAL.test(required(request.signal, "signal"))) throw invalid(`"${request.signal}" is not a signal`);
      find(request).kill();
      return {};
    },

    async resizeProcess(request) {
      if (request.size === undefined) throw invalid("size is required", { field: "size" });
      const process = find(request);
      process.requireLiving();
      if (!process.facts.isTerminal) throw unsuitable(`process ${process.facts.number} has no terminal`);
      return {};
    },

    async waitProcess(request, signal) {
      const process = find(request);
      await process.ended(signal);
      return messageOf(process, world.sandbox(request.sandboxId));
    },
  };
}

function messageOf(process: MockProcess, sandbox: MockSandbox): MessageInitShape<typeof ProcessSchema> {
  const { facts, end, startedAtMs, endedAtMs } = process;
  const { number, tag, command } = facts;
  return {
    ...{ number, tag, sandboxId: sandbox.id, ownerId: sandbox.ownerId, kind: ProcessKind.STARTED },
    ...(typeof command === "string" ? { command } : { argv: [...command] }),
    startedAt: timestampMessage(startedAtMs),
    endedAt: timestampMessage(endedAtMs),
    state: end === undefined ? ProcessState.RUNNING : ProcessState.ENDED,
    ...end,
  };
}

function textOf(command: string | readonly string[]): string {
  return typeof command === "string" ? command : command.join(" ");
}
