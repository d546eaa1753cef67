import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor } from "@connectrpc/connect";
import type { ServiceLog } from "../log.ts";
import { unless } from "../race.ts";
import { callerKey } from "../rpc/caller-context.ts";
import { toConnectError } from "../rpc/errors.ts";
import { limitedAs, methodName, secretKey } from "./gate.ts";
import type { RunningCall, RunningCalls } from "./running-calls.ts";
import { paced, type UploadPace } from "./upload-pace.ts";

export interface SupervisionOptions {
  readonly calls: RunningCalls;
  readonly pace: UploadPace;
  readonly log: ServiceLog;
  readonly now: () => number;
  readonly onEnd: (method: DescMethod, durationMs: number, error: ConnectError | undefined) => void;
}

/** These end with the caller or the server, and may never do so by themselves: a server that wants to stop does not wait for them. */
const ENDLESS = new Set([
  "sandbox.v1.EventService.WatchEvents",
  "sandbox.v1.SandboxService.WatchFiles",
  "sandbox.v1.SandboxService.AttachProcess",
  "sandbox.v1.SandboxService.WaitProcess",
  "grpc.health.v1.Health.Watch",
]);

/** Stands around every call: counts it, can end it, and gives its errors their form. */
export function createSupervision(options: SupervisionOptions): Interceptor {
  return (next) => async (request) => {
    const { method, contextValues } = request;
    const caller = contextValues.get(callerKey);
    const startedAtMs = options.now();
    let call: RunningCall | undefined;
    let ended = false;
    const failureOf = (error: unknown): ConnectError =>
      toConnectError(error, { log: options.log, method: methodName(method), signal: call?.signal ?? request.signal });
    const end = (error?: ConnectError): void => {
      if (ended) return;
      ended = true;
      call?.end();
      options.onEnd(method, options.now() - startedAtMs, error);
    };
    try {
      call = options.calls.begin({
        // Nobody's calls (health) must not be in the way of anybody's, nor of each other's.
        owner: caller === undefined ? `nobody:${methodName(method)}` : limitedAs(caller),
        secret: contextValues.get(secretKey),
        endless: ENDLESS.has(methodName(method)),
        signal: request.signal,
      });
      const { signal, cut } = call;
      const answer = next(
        request.stream
          ? { ...request, signal, message: paced(request.message, method, options.pace, signal) }
          : { ...request, signal },
      );
      const response = await unless(answer, { signal: cut });
      if (response.stream) return { ...response, message: supervised(response.message, { call, end, failureOf }) };
      end();
      return response;
    } catch (error) {
      const failure = failureOf(error);
      end(failure);
      throw failure;
    }
  };
}

interface Supervision {
  readonly call: RunningCall;
  readonly end: (error?: ConnectError) => void;
  readonly failureOf: (error: unknown) => ConnectError;
}

/**
 * The messages of a call, until it ends in one of four ways: they are over, the call failed, the server cut it, or the
 * caller is gone. In the last two the source is told to stop even if nobody asks for another message.
 */
async function* supervised<Message>(
  source: AsyncIterable<Message>,
  { call, end, failureOf }: Supervision,
): AsyncGenerator<Message> {
  const iterator = source[Symbol.asyncIterator]();
  const stopSource = (): void => {
    end(failureOf(call.signal.reason));
    // It is told to stop; how that goes is of interest to nobody.
    iterator.return?.().catch(() => {});
  };
  call.signal.addEventListener("abort", stopSource, { once: true });
  try {
    for (;;) {
      const result = await unless(iterator.next(), { signal: call.cut });
      if (result.done === true) break;
      yield result.value;
    }
    end();
  } catch (error) {
    const failure = failureOf(error);
    end(failure);
    throw failure;
  } finally {
    call.signal.removeEventListener("abort", stopSource);
    end();
    void iterator.return?.().catch(() => {});
  }
}
