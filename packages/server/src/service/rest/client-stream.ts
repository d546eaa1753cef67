import type { DescMethodClientStreaming, Message } from "@bufbuild/protobuf";
import type { Call } from "./call.ts";
import { messageJson } from "./response-json.ts";
import { jsonResponse } from "./responses.ts";

/**
 * Sends messages that are made from a request's body and answers with the one that comes back. What is wrong with the
 * body itself is the answer, whatever the method made of the stream's sudden end.
 */
export async function answerClientStream(
  call: Call,
  method: DescMethodClientStreaming,
  messages: (signal: AbortSignal) => AsyncGenerator<Message>,
): Promise<Response> {
  const stop = new AbortController();
  const signal = AbortSignal.any([call.signal, stop.signal]);
  const input: { failed: boolean; error: unknown } = { failed: false, error: undefined };

  async function* observed(): AsyncGenerator<Message> {
    try {
      yield* messages(call.signal);
    } catch (error) {
      input.failed = true;
      input.error = error;
      // The method must take this for a cut, never for the end of the stream.
      stop.abort(error);
      throw error;
    }
  }

  const source = observed();
  try {
    const response = await call.transport.stream(method, signal, undefined, call.headers, source);
    let answer: Message | undefined;
    for await (const message of response.message) {
      answer = message;
    }
    if (input.failed) {
      throw input.error;
    }
    if (answer === undefined) {
      throw new Error(`${method.name} ended without an answer`);
    }
    return jsonResponse(200, messageJson(method.output, answer, call.registry));
  } catch (error) {
    throw input.failed ? input.error : error;
  } finally {
    // A method may answer before it has read everything; the rest of the body is then let go.
    source.return(undefined).catch(() => {});
  }
}
