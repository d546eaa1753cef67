import {
  type ExecInput,
  type ExecOutputSchema,
  type ExecRequest,
  ExecResultSchema,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import type { ExecAnswer, ExecPart, Sandboxes } from "../../runtime/sandboxes/api.ts";
import { fromRuntimeError } from "./connect-error.ts";
import type { Call, SandboxHandlers } from "./handlers.ts";
import { endMembers, execCallOf, execResultMessage, type OutputRoom, outputMessage } from "./messages/exec.ts";
import { invalid, required } from "./messages/fields.ts";
import { pieces, readFirst, unread } from "./streams.ts";

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

/** The request of a command whose input follows. */
async function readStart(inputs: AsyncIterator<ExecInput>): Promise<ExecRequest> {
  const { opening: start } = await readFirst(inputs, "start", ({ input }) =>
    input.case === "start" ? input.value : undefined,
  );
  required(start.sandboxId, "sandbox_id", "in start");
  if (start.stdin !== "" || start.stdinBytes.length > 0) {
    throw invalid("start takes neither stdin nor stdin_bytes: send the input in messages of its own");
  }
  return start;
}

/**
 * What a client types into a command, message by message as the command reads it. `end` and the end of the client's stream
 * are the end of the input; what follows an `end` is not read.
 */
class CommandInput {
  readonly #inputs: AsyncIterable<ExecInput>;
  readonly #broken = new AbortController();
  /** Aborts when the stream goes wrong: the command is not to take that for the end of its input. */
  readonly signal: AbortSignal = this.#broken.signal;
  /** What the client did wrong, which is then the call's error. */
  fault: { readonly error: unknown } | undefined;

  constructor(inputs: AsyncIterator<ExecInput>) {
    this.#inputs = unread(inputs);
  }

  async *data(): AsyncGenerator<Uint8Array> {
    // What the reader throws in here, because the command takes no more, is no fault of the client's.
    for (let data = await this.#next(); data !== undefined; data = await this.#next()) yield data;
  }

  /** Undefined at the end of the input. */
  async #next(): Promise<Uint8Array | undefined> {
    try {
      for await (const { input } of this.#inputs) {
        if (input.case === "start") throw invalid("start already received");
        if (input.case === "end" && input.value) return undefined;
        if (input.case === "stdin" && input.value.length > 0) return input.value;
      }
      return undefined;
    } catch (error) {
      this.fault = { error };
      this.#broken.abort(error);
      throw error;
    }
  }
}
