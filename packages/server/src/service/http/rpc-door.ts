import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Log } from "../../runtime/log.ts";
import type { OneAnswerMethods } from "../rpc/one-answer.ts";
import { type ExactJsonOptions, withExactJson } from "./exact-json.ts";
import { answerGrpc, isPlainGrpc, withPlainMessage } from "./grpc-one-answer.ts";
import { isCutShort, type NodeRequest, type NodeResponse } from "./listener.ts";

/**
 * Answers gRPC, gRPC-Web and Connect, by the path of a request; gives false when it is none of these, and nothing was done then.
 * `messageTimeoutMs` is for the arrival of a request that is a single message; 0: no limit.
 */
export function createRpcDoor(options: {
  readonly router: ConnectRouter;
  readonly oneAnswer: OneAnswerMethods;
  readonly log: Log;
  readonly messageTimeoutMs: number;
  readonly json: ExactJsonOptions;
}): (request: NodeRequest, response: NodeResponse) => Promise<boolean> {
  const { router, oneAnswer, log, messageTimeoutMs, json } = options;
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return async (request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    const handler = handlers.get(path);
    if (handler === undefined) return false;
    if (handler.method.methodKind === "unary" && messageTimeoutMs > 0)
      limitArrival(request, response, messageTimeoutMs);
    try {
      const method = oneAnswer.find(path);
      if (method !== undefined && isPlainGrpc(request)) {
        await answerGrpc(request, response, oneAnswer, method);
        return true;
      }
      const call = universalRequestFromNodeRequest(request, response, undefined, undefined);
      const body = wholeBody(request, call.body as AsyncIterable<Uint8Array>);
      // Resolves only with the last byte, so nothing waits for it.
      const answer = await handler(withExactJson({ ...call, body }, handler.method, json));
      await universalResponseToNodeResponse(withPlainTrailer(answer), response);
    } catch (error) {
      const { code } = ConnectError.from(error);
      if (code !== Code.Aborted && code !== Code.Canceled) {
        log({ level: "warn", message: `the answer to ${handler.method.name} was not delivered`, error });
      }
      response.destroy();
    }
    return true;
  };
}

function limitArrival(request: NodeRequest, response: NodeResponse, timeoutMs: number): void {
  const timer = setTimeout(() => {
    if (!request.complete) response.destroy();
  }, timeoutMs).unref();
  response.once("close", () => clearTimeout(timer));
}

async function* wholeBody(request: NodeRequest, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* body;
  if (isCutShort(request)) throw new ConnectError("the request broke off", Code.Canceled);
}

/** A gRPC client understands no status of HTTP: it wants to be told in its own terms that there is no such method. */
export function answerUnknown(request: NodeRequest, response: NodeResponse): boolean {
  const contentType = request.headers["content-type"] ?? "";
  if (!/^application\/grpc(?!-web)/.test(contentType)) return false;
  // Without an explicit head, head and end go out as one frame, which is how gRPC sends a status alone.
  response.statusCode = 200;
  response.setHeader("content-type", contentType);
  response.setHeader("grpc-status", String(Code.Unimplemented));
  response.setHeader("grpc-message", "unknown service or method");
  response.end();
  return true;
}

/** A stream's status is known only at its end, which is when its trailer is asked for. */
function withPlainTrailer(response: UniversalServerResponse): UniversalServerResponse {
  const { trailer } = response;
  if (trailer === undefined) return response;
  return {
    ...response,
    get trailer() {
      return withPlainMessage(trailer);
    },
  };
}
