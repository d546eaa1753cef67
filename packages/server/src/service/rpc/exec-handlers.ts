import { type ExecOutputSchema, ExecResultSchema } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { RuntimeError } from "../../runtime/errors.ts";
import type { ExecAnswer, ExecPart, Sandboxes } from "../../runtime/sandboxes/api.ts";
import { CommandInput, readStart } from "./command-input.ts";
import { fromRuntimeError } from "./errors.ts";
import type { Call, SandboxHandlers } from "./handlers.ts";
import { endMembers, execCallOf, execResultMessage, type OutputRoom, outputMessage } from "./messages/exec.ts";
import { pieces } from "./streams.ts";

export interface MessageLimits {
  readonly maxMessageBytes: number;
}

export function execHandlers(sandboxes: Sandboxes, limits: MessageLimits) {
  return {
    async exec(request, call) {
      const answer = await sandboxes.exec(call.caller, request.sandboxId, execCallOf(request, call.signal));
      return execResult(answer, call, limits);
    },

    async *execStream(request, { caller, signal }) {
      yield* execOutputs(sandboxes.execStream(caller, request.sandboxId, execCallOf(request, signal)), limits);
    },

    async *execInteractive(requests, { caller, signal }) {
      const inputs = requests[Symbol.asyncIterator]();
      const start = await readStart(inputs);
      const input = new CommandInput(inputs);
      const call = { ...execCallOf(start, AbortSignal.any([signal, input.signal])), stdin: input.data() };
      try {
        yield* execOutputs(sandboxes.execStream(caller, start.sandboxId, call), limits);
      } catch (error) {
        // What the client did wrong is the answer, however the command took its end.
        throw input.fault === undefined ? error : input.fault.error;
      }
    },
  } satisfies SandboxHandlers;
}

/** The result, or the error that a timeout is for callers of a single answer; what there was of output goes with it. */
export function execResult(
  answer: ExecAnswer,
  { protocol }: Pick<Call, "protocol">,
  limits: MessageLimits,
): MessageInitShape<typeof ExecResultSchema> {
  if (!answer.timedOut) return execResultMessage(answer, messageRoom(limits));
  throw fromRuntimeError(new RuntimeError("COMMAND_TIMEOUT", "command timed out"), {}, [
    { desc: ExecResultSchema, value: execResultMessage(answer, timeoutRoom(protocol, limits)) },
  ]);
}

export async function* execOutputs(
  parts: AsyncIterable<ExecPart>,
  { maxMessageBytes }: MessageLimits,
): AsyncGenerator<MessageInitShape<typeof ExecOutputSchema>> {
  for await (const part of parts) {
    if (part.kind === "exit") yield endMembers(part.end, maxMessageBytes / 4);
    else for (const data of pieces(part.data)) yield outputMessage(part.kind, data);
  }
}

/** Everything in the message but the output takes far less. */
const OTHER_MEMBERS_BYTES = 4096;

function messageRoom({ maxMessageBytes }: MessageLimits): OutputRoom {
  return { bytes: Math.max(0, maxMessageBytes - OTHER_MEMBERS_BYTES), keep: "beginning" };
}

/**
 * Errors of gRPC are HTTP trailers, of which clients take 8 KiB altogether: the end of the output fits, and tells what the
 * command was at. Other protocols have them in the body.
 */
function timeoutRoom(protocol: string, limits: MessageLimits): OutputRoom {
  return protocol === "grpc" ? { bytes: 4096, keep: "end" } : messageRoom(limits);
}
