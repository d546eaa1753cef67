import { isUtf8 } from "node:buffer";
import {
  type ExecInput,
  ExecOutput_OutputType,
  type ExecOutputSchema,
  type ExecRequest,
  ExecResultSchema,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CollectedOutput, Collector } from "../commands/execution.ts";
import { Fault, invalid } from "../faults.ts";
import { type ExecCall, type ExecEnd, type ExecPart, limitExceeded, outputLimit } from "../sandboxes/commands.ts";
import type { MockSandbox } from "../sandboxes/sandbox.ts";
import type { World } from "../world.ts";
import { durationMessage, durationMs, required } from "./fields.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";
import { pieces } from "./uploads.ts";

export function execHandlers(world: World): SandboxHandlers<"exec" | "execStream" | "execInteractive"> {
  const { commands } = world;
  return {
    async exec(request, signal) {
      const sandbox = world.sandbox(request.sandboxId);
      return await execResult(sandbox, commands.exec(sandbox, callOf(request, stdinOf(request), signal)));
    },

    async *execStream(request, signal) {
      const sandbox = world.sandbox(request.sandboxId);
      yield* execOutputs(commands.exec(sandbox, callOf(request, stdinOf(request), signal)));
    },

    async *execInteractive(requests, signal) {
      const inputs = requests[Symbol.asyncIterator]();
      const first = await inputs.next();
      if (first.done === true) throw invalid("no start received");
      const { input } = first.value;
      if (input.case !== "start") throw invalid("start must be sent first");
      if (stdinOf(input.value).length > 0) throw invalid("start has no stdin: send it as inputs");
      const sandbox = world.sandbox(input.value.sandboxId);
      const rest: AsyncIterable<ExecInput> = { [Symbol.asyncIterator]: () => ({ next: () => inputs.next() }) };
      yield* execOutputs(commands.exec(sandbox, callOf(input.value, typed(rest), signal)));
    },
  };
}

/** The result, or the error that a timeout is for callers of a single answer; what there was of output goes with it. */
export async function execResult(
  sandbox: MockSandbox,
  parts: AsyncIterable<ExecPart>,
): Promise<MessageInitShape<typeof ExecResultSchema>> {
  const limit = outputLimit(sandbox);
  const output = new Collector(limit);
  let end: ExecEnd | undefined;
  for await (const part of parts) {
    if (part.kind === "exit") end = part.end;
    else output.add(part);
  }
  if (end === undefined) throw new Fault("INTERNAL", "the command did not end");
  const collected = output.result();
  if (collected.truncated) limitExceeded(sandbox, "output", `output beyond ${limit} bytes was dropped`);
  const value = resultMessage(end, collected);
  if (!end.timedOut) return value;
  throw new Fault("COMMAND_TIMEOUT", "command timed out", { detail: { desc: ExecResultSchema, value } });
}

export async function* execOutputs(
  parts: AsyncIterable<ExecPart>,
): AsyncGenerator<MessageInitShape<typeof ExecOutputSchema>> {
  for await (const part of parts) {
    if (part.kind === "exit") yield endMembers(part.end);
    else for (const data of pieces(part.data)) yield { type: OUTPUT_TYPES[part.kind], data };
  }
}

const OUTPUT_TYPES = { stdout: ExecOutput_OutputType.STDOUT, stderr: ExecOutput_OutputType.STDERR } as const;

/** Bytes after the first, until the client says that they end. */
async function* typed(inputs: AsyncIterable<ExecInput>): AsyncGenerator<Uint8Array> {
  for await (const { input } of inputs) {
    if (input.case === "start") throw invalid("start already received");
    if (input.case === "end") return;
    if (input.case === "stdin") yield input.value;
  }
}

function callOf(request: ExecRequest, stdin: ExecCall["stdin"], signal: AbortSignal): ExecCall {
  const { command, argv, env, workdir, timeout } = request;
  if (argv.length > 0 && command !== "") throw invalid("command and argv exclude each other");
  return {
    command: argv.length > 0 ? argv : required(command, "command"),
    env,
    workdir,
    stdin,
    timeoutMs: durationMs(timeout, "timeout"),
    signal,
  };
}

function stdinOf({ stdin, stdinBytes }: ExecRequest): Uint8Array {
  if (stdin !== "" && stdinBytes.length > 0) throw invalid("stdin and stdin_bytes exclude each other");
  return stdin === "" ? stdinBytes : Buffer.from(stdin);
}

function resultMessage(end: ExecEnd, output: CollectedOutput): MessageInitShape<typeof ExecResultSchema> {
  const exact = (bytes: Buffer) => (isUtf8(bytes) ? new Uint8Array() : bytes);
  return {
    ...endMembers(end),
    stdout: output.stdout.toString("utf8"),
    stderr: output.stderr.toString("utf8"),
    stdoutBytes: exact(output.stdout),
    stderrBytes: exact(output.stderr),
    truncated: output.truncated,
  };
}

function endMembers(end: ExecEnd) {
  return {
    exitCode: end.exitCode,
    signal: end.signal,
    timedOut: end.timedOut,
    duration: durationMessage(end.durationMs),
    sessionClosed: end.sessionClosed,
    syncedVersion: BigInt(end.syncedVersion),
    syncProblems: [...end.syncProblems],
  };
}
