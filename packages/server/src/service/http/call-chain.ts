import { STATUS_NUMBERS } from "@agentfense/protocol";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { type ConnectError, type ConnectRouterOptions, createContextKey, type Interceptor } from "@connectrpc/connect";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { Caller } from "../../runtime/caller.ts";
import type { Log } from "../../runtime/log.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { unless } from "../../runtime/waiting.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { toConnectError } from "../rpc/connect-error.ts";
import { callerKey } from "../rpc/handlers.ts";
import type { CallContext, OneAnswerChain } from "../rpc/one-answer.ts";
import { paced, UNHURRIED, type UploadPace } from "../upload-pace.ts";
import type { Authenticator } from "./authentication.ts";
import type { ExactJsonOptions } from "./exact-json.ts";
import type { OwnerRates, ServiceLimits } from "./limits.ts";
import { limitedAs, type RunningCall, type RunningCalls } from "./running-calls.ts";
import type { Serving } from "./serving.ts";

/** The secret of a call, to see later whether it is still valid. */
const secretKey = createContextKey<string | undefined>(undefined, { description: "secret" });

export interface CallChainOptions {
  readonly limits: ServiceLimits;
  readonly authenticator: Authenticator;
  readonly rates: OwnerRates;
  readonly calls: RunningCalls;
  readonly serving: Serving;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** What every call over every door passes: the gate before its first message, the supervision from then on. */
export interface CallChain {
  readonly oneAnswer: OneAnswerChain;
  /** The same for what Connect carries. */
  readonly connect: ConnectRouterOptions;
  readonly json: ExactJsonOptions;
}

export function createCallChain(options: CallChainOptions): CallChain {
  const { messageBytes: readMaxBytes, responseBytes: writeMaxBytes } = options.limits;
  const gate = createGate(options);
  const pace = { idleMs: options.limits.uploadIdleMs, totalMs: options.limits.uploadMs };
  const { supervise, interceptor } = createSupervision(options, pace);
  const compressions = [compressionGzip, compressionBrotli];
  return {
    json: { compressions, readMaxBytes },
    oneAnswer: { readMaxBytes, writeMaxBytes, pace, gate, supervise },
    connect: {
      acceptCompression: compressions,
      // Answers go out as they are: near networks carry bytes faster than we squeeze them.
      compressMinBytes: 0xffff_ffff,
      readMaxBytes,
      writeMaxBytes,
      requestGate: gate,
      interceptors: [interceptor],
    },
  };
}

const HEALTH = "grpc.health.v1.Health";
const REFLECTION = new Set(["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]);

/**
 * Decides about every call, over whatever door it came, before its first message is read: is the server still serving,
 * who calls, may a key of this role call this, is it the owner's turn.
 */
function createGate(options: CallChainOptions): OneAnswerChain["gate"] {
  const { serving, authenticator, rates, metrics, log } = options;
  return async ({ method, requestHeader, values, signal }) => {
    if (method.parent.typeName === HEALTH) return;
    try {
      if (serving.isDraining) throw new RuntimeError("SHUTTING_DOWN", "the server is shutting down");
      const { caller, secret } = await authenticator.identify(requestHeader);
      checkRole(caller, method);
      rates.take(limitedAs(caller));
      values.set(callerKey, caller);
      values.set(secretKey, secret);
    } catch (error) {
      const refusal = toConnectError(error, { log, method: methodName(method), signal });
      observe(metrics, method, 0, refusal);
      throw refusal;
    }
  };
}

function checkRole(caller: Caller, method: DescMethod): void {
  if (caller.role !== "read-only" || REFLECTION.has(method.parent.typeName)) return;
  if (method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) return;
  throw new RuntimeError("ROLE_FORBIDS", `a read-only key may not call ${method.name}`, {
    details: { role: caller.role, method: method.name },
  });
}

/** These end with the caller or the server, and may never do so by themselves: a server that wants to stop does not wait for them. */
const ENDLESS = new Set([
  "sandbox.v1.EventService.WatchEvents",
  "sandbox.v1.SandboxService.WatchFiles",
  "sandbox.v1.SandboxService.AttachProcess",
  "sandbox.v1.SandboxService.WaitProcess",
  "grpc.health.v1.Health.Watch",
]);

/** A call that is counted and can be ended. */
interface Watched {
  readonly call: RunningCall;
  end(error?: ConnectError): void;
  failureOf(error: unknown): ConnectError;
}

/** Stands around every call: counts it, can end it, and gives its errors their form. */
function createSupervision(
  { calls, metrics, log }: CallChainOptions,
  pace: UploadPace,
): {
  readonly supervise: OneAnswerChain["supervise"];
  readonly interceptor: Interceptor;
} {
  async function watch<Answer>(
    { method, values, signal }: Pick<CallContext, "method" | "values" | "signal">,
    work: (watched: Watched) => Promise<Answer>,
  ): Promise<Answer> {
    const caller = values.get(callerKey);
    const startedAtMs = performance.now();
    const endless = ENDLESS.has(methodName(method));
    let call: RunningCall | undefined;
    let ended = false;
    const failureOf = (error: unknown): ConnectError =>
      toConnectError(error, { log, method: methodName(method), signal: call?.signal ?? signal });
    const end = (error?: ConnectError): void => {
      if (ended) return;
      ended = true;
      if (call !== undefined && !endless) metrics.loopLag.workEnds();
      call?.end();
      observe(metrics, method, performance.now() - startedAtMs, error);
    };
    try {
      call = calls.begin({
        // Nobody's calls (health) must not be in the way of anybody's, nor of each other's.
        owner: caller === undefined ? `nobody:${methodName(method)}` : limitedAs(caller),
        secret: values.get(secretKey),
        endless,
        signal,
      });
      if (!endless) metrics.loopLag.workBegins();
      return await unless(work({ call, end, failureOf }), { signal: call.cut });
    } catch (error) {
      const failure = failureOf(error);
      end(failure);
      throw failure;
    }
  }

  const supervise: OneAnswerChain["supervise"] = (context, work) =>
    watch(context, async ({ call, end }) => {
      const answer = await work(call.signal);
      end();
      return answer;
    });

  const interceptor: Interceptor = (next) => (request) => {
    const { method, contextValues: values, signal } = request;
    const context = { method, values, signal };
    return watch(context, async (watched) => {
      const { call, end } = watched;
      const ownPace = method.methodKind === "bidi_streaming" ? UNHURRIED : pace;
      const response = await next(
        request.stream
          ? { ...request, signal: call.signal, message: paced(request.message, ownPace, call.signal) }
          : { ...request, signal: call.signal },
      );
      if (response.stream) return { ...response, message: supervised(response.message, watched) };
      end();
      return response;
    });
  };
  return { supervise, interceptor };
}

/**
 * The messages of a call, until it ends in one of four ways: they are over, the call failed, the server cut it, or the
 * caller is gone. In the last two the source is told to stop even if nobody asks for another message.
 */
async function* supervised<Message>(
  source: AsyncIterable<Message>,
  { call, end, failureOf }: Watched,
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

/** "sandbox.v1.SandboxService.Exec" */
function methodName(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`;
}

const STATUS_NAMES = new Map<number, string>(Object.entries(STATUS_NUMBERS).map(([name, number]) => [number, name]));

function observe(metrics: Metrics, method: DescMethod, durationMs: number, error: ConnectError | undefined): void {
  const status = STATUS_NAMES.get(error?.code ?? STATUS_NUMBERS.OK) ?? "UNKNOWN";
  metrics.rpc(methodName(method), status, durationMs);
}
