import { STATUS_NUMBERS } from "@agentfense/protocol";
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, ConnectRouterOptions } from "@connectrpc/connect";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { ServiceLog } from "../log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Authenticator } from "./authentication.ts";
import { createGate, methodName } from "./gate.ts";
import type { ServiceLimits } from "./limits.ts";
import type { OwnerRates } from "./rate-limit.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { Serving } from "./serving.ts";
import { createSupervision } from "./supervision.ts";

export interface CallChainOptions {
  readonly limits: ServiceLimits;
  readonly authenticator: Authenticator;
  readonly rates: OwnerRates;
  readonly calls: RunningCalls;
  readonly serving: Serving;
  readonly metrics: Metrics;
  readonly log: ServiceLog;
}

/** What every call over every door passes: the gate before its first message, the supervision from then on. */
export function createCallChain(options: CallChainOptions): ConnectRouterOptions {
  const { limits, serving, metrics, log } = options;
  const observe = (method: DescMethod, durationMs: number, error: ConnectError | undefined): void =>
    metrics.rpc(methodName(method), statusName(error?.code ?? STATUS_NUMBERS.OK), durationMs);
  return {
    acceptCompression: [compressionGzip, compressionBrotli],
    // Answers go out as they are: near networks carry bytes faster than we squeeze them.
    compressMinBytes: 0xffff_ffff,
    readMaxBytes: limits.messageBytes,
    writeMaxBytes: limits.responseBytes,
    requestGate: createGate({
      authenticator: options.authenticator,
      rates: options.rates,
      isDraining: () => serving.isDraining,
      log,
      onRefusal: (method, error) => observe(method, 0, error),
    }),
    interceptors: [
      createSupervision({
        calls: options.calls,
        pace: { idleMs: limits.uploadIdleMs, totalMs: limits.uploadMs },
        log,
        now: () => performance.now(),
        onEnd: observe,
      }),
    ],
  };
}

const STATUS_NAMES = new Map<number, string>(Object.entries(STATUS_NUMBERS).map(([name, number]) => [number, name]));

function statusName(code: number): string {
  return STATUS_NAMES.get(code) ?? "UNKNOWN";
}
