import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import type { Keys } from "../runtime/keys/api.ts";
import type { Log } from "../runtime/log.ts";
import type { PortTokens } from "../runtime/ports/tokens.ts";
import { RuntimeError } from "../runtime/runtime-error.ts";
import type { Sandboxes } from "../runtime/sandboxes/api.ts";
import { endsWithin, LONGEST_TIMER_MS } from "../runtime/waiting.ts";
import { isWithinMachine, resolveBinding } from "./http/address.ts";
import { Authenticator } from "./http/authentication.ts";
import { createCallChain } from "./http/call-chain.ts";
import { type Door, Doors } from "./http/doors.ts";
import { Forwarder } from "./http/forwarding.ts";
import { createFront, createUpgrades, sendStatus } from "./http/front.ts";
import { DEFAULT_LIMITS, OwnerRates, type ServiceLimits } from "./http/limits.ts";
import { type Listener, type NodeRequest, type NodeResponse, openListener, type TlsOptions } from "./http/listener.ts";
import { createMetricsPages, createPages } from "./http/pages.ts";
import { answerUnknown, createRpcDoor } from "./http/rpc-door.ts";
import { RunningCalls } from "./http/running-calls.ts";
import { registerHealth, registerReflection, Serving } from "./http/serving.ts";
import { Metrics } from "./metrics/metrics.ts";
import { openApiDocument } from "./openapi/openapi.ts";
import { createRestHandler } from "./rest/handler.ts";
import { fromRuntimeError } from "./rpc/connect-error.ts";
import { createMemoryTransport } from "./rpc/memory-transport.ts";
import { OneAnswerMethods } from "./rpc/one-answer.ts";

export interface StartServiceOptions {
  readonly runtime: {
    readonly keys: Keys;
    readonly sandboxes: Pick<Sandboxes, "connect">;
    readonly info: { readonly version: string };
  };
  /** What links to ports are signed with. */
  readonly tokens: PortTokens;
  /** Puts the services of the contract on a router; asked once for the network and once for REST. */
  readonly register: (router: ConnectRouter) => void;
  readonly grpc: { readonly address: string };
  /** "": no REST. */
  readonly http: { readonly address: string };
  /**
   * | address | metrics are served                                    |
   * | absent  | at /metrics of the HTTP port, to this machine only    |
   * | given   | at a listener of their own, to everybody who reaches it |
   */
  readonly metrics?: { readonly address?: string; readonly source?: Metrics };
  readonly tls?: TlsOptions;
  readonly keys: "required" | "off";
  /** Binds an address that others reach although there are no keys. */
  readonly allowOpen: boolean;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
  /** Ways in besides, on the port of REST or at addresses of their own. */
  readonly doors?: readonly Door[] | undefined;
  readonly limits?: Partial<ServiceLimits>;
  /** Whether work can be taken; absent: always. */
  readonly ready?: () => boolean;
  readonly log?: Log;
  readonly clock?: { now(): number };
}

/** Between the end of the calls and the end of their connections: the last errors are on their way. */
const FLUSH_MS = 200;

/** The listening service. */
export interface Service extends AsyncDisposable {
  /** "127.0.0.1:9000", with the real port, or "unix:/path". */
  readonly grpcAddress: string;
  readonly httpAddress: string | undefined;
  readonly metricsAddress: string | undefined;
  /** The addresses of the doors that have listeners of their own. */
  readonly doorAddresses: readonly string[];
  readonly metrics: Metrics;
  /** Takes no new call, lets those that run end, and ends what is left after `graceMs`. */
  drain(graceMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Puts the doors together: one chain of checks, one set of handlers, any number of ports. */
export async function startService(options: StartServiceOptions): Promise<Service> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const log = options.log ?? (() => {});
  const { clock = performance, doors: given = [] } = options;
  await using undo = new AsyncDisposableStack();

  const metrics = options.metrics?.source ?? undo.use(new Metrics());
  const serving = new Serving(options.ready ?? (() => true));
  const authenticator = new Authenticator(options.keys === "required" ? options.runtime.keys : undefined);
  const rates = new OwnerRates({ perSecond: limits.requestsPerSecond, burst: limits.burst, now: () => clock.now() });
  const calls = undo.use(
    new RunningCalls({
      concurrentCalls: limits.concurrentCalls,
      isRevoked: (secret) => (secret.startsWith("afp.") ? ports.isRevoked(secret) : authenticator.isRevoked(secret)),
    }),
  );
  const ports: Forwarder = new Forwarder({
    sandboxes: options.runtime.sandboxes,
    keys: options.keys === "required" ? options.runtime.keys : undefined,
    tokens: options.tokens,
    authenticator,
    portKeyIn: (headers, sandboxId) => firstOf(given, (door) => door.portKeyIn?.(headers, sandboxId)),
    calls,
    rates,
    isDraining: () => serving.isDraining,
    headerBytes: limits.headerBytes,
    answerTimeoutMs: limits.uploadIdleMs > 0 ? limits.uploadIdleMs : LONGEST_TIMER_MS,
    log,
  });
  const chain = createCallChain({ limits, authenticator, rates, calls, serving, metrics, log });
  const router = createConnectRouter(chain.connect);
  const oneAnswer = new OneAnswerMethods(chain.oneAnswer);
  options.register(oneAnswer.learningFrom(router));
  const contract = [...new Set(router.handlers.map((handler) => handler.service))];
  registerHealth(router, serving, new Set(contract.map((service) => service.typeName)));
  registerReflection(router, contract);
  const rpc = createRpcDoor({ router, oneAnswer, log, messageTimeoutMs: limits.uploadIdleMs, json: chain.json });

  const policy = {
    allowedHosts: new Set((options.allowedHosts ?? []).map((host) => host.toLowerCase())),
    allowedOrigins: new Set(options.allowedOrigins ?? []),
  };
  const front = (next: (request: NodeRequest, response: NodeResponse) => Promise<void>, doors?: Doors) =>
    createFront({
      policy,
      authenticator,
      doors,
      ports: doors === undefined ? undefined : ports,
      log,
      isDraining: () => serving.isDraining,
      next: async (request, response) => {
        if (doors !== undefined && (await ports.answer(request, response))) return;
        if (await rpc(request, response)) return;
        if (answerUnknown(request, response)) return;
        if (await doors?.answer(request, response)) return;
        await next(request, response);
      },
    });

  /** Nothing else is there: every path is this door's. */
  const frontOfDoor = (door: Doors) =>
    createFront({
      policy,
      authenticator,
      doors: door,
      ports,
      log,
      isDraining: () => serving.isDraining,
      next: async (request, response) => {
        if ((await ports.answer(request, response)) || (await door.answer(request, response))) return;
        sendStatus(response, 404, "NOT_FOUND", "Not Found");
      },
    });

  const listeners: Listener[] = [];
  const listen = async (
    address: string,
    rules: Parameters<typeof resolveBinding>[1],
    answer: ReturnType<typeof front>,
    upgrade?: ReturnType<typeof createUpgrades>,
  ) => {
    const binding = await resolveBinding(address, rules);
    const listener = await openListener({ address: binding, tls: options.tls, limits, log, answer, upgrade });
    undo.defer(() => listener.cut());
    listeners.push(listener);
    if (options.tls === undefined && !isWithinMachine(binding)) {
      const message = `${listener.address} is open to other machines in cleartext: whoever is on the way can read along`;
      log({ level: "warn", message });
    }
    return listener.address;
  };

  const nothing = front(async (_request, response) => sendStatus(response, 404, "NOT_FOUND", "Not Found"));
  const grpcAddress = await listen(options.grpc.address, options, nothing);
  const separateMetrics = options.metrics?.address;
  const inMemory = createMemoryTransport({
    register: options.register,
    oneAnswer: chain.oneAnswer,
    streams: chain.connect,
  });
  const openDoors = (those: readonly Door[]): Doors => {
    const doors = new Doors({ doors: those, authenticator, calls, transport: inMemory, log });
    undo.defer(async () => void (await doors.close()));
    return doors;
  };
  const doors = openDoors(given.filter(({ address }) => address === undefined));
  const pages = createPages({
    serving,
    authenticator,
    rest: createRestHandler({
      services: contract,
      transport: inMemory,
      limits: { ...limits, uploadIdleMs: limits.uploadIdleMs || Number.POSITIVE_INFINITY },
      log,
    }),
    openApi: JSON.stringify(openApiDocument(contract, options.runtime.info)),
    metrics: separateMetrics === undefined ? metrics : undefined,
    log,
  });
  const upgradesAt = (at: Doors) => createUpgrades({ policy, authenticator, doors: at, ports, log });
  const httpAddress =
    options.http.address === ""
      ? undefined
      : await listen(options.http.address, options, front(pages, doors), upgradesAt(doors));
  const apart: { readonly doors: Doors; readonly address: string }[] = [];
  for (const door of given) {
    if (door.address === undefined) continue;
    const alone = openDoors([door]);
    const address = await listen(door.address, options, frontOfDoor(alone), upgradesAt(alone));
    apart.push({ doors: alone, address });
  }
  const metricsAddress =
    separateMetrics === undefined
      ? undefined
      : await listen(separateMetrics, { keys: "off", allowOpen: true }, createMetricsPages({ serving, metrics, log }));

  const parts = undo.move();
  const end = async (graceMs: number): Promise<void> => {
    const goodbye = fromRuntimeError(new RuntimeError("SHUTTING_DOWN", "the server is shutting down"));
    serving.drain();
    const all = [doors, ...apart.map((each) => each.doors)];
    await endsWithin(FLUSH_MS, Promise.all(all.map((each) => each.close()))); // they have a way of their own to say goodbye
    calls.cutEndless(goodbye);
    const closed = Promise.all(listeners.map((listener) => listener.closed));
    const stopAll = (): void => {
      for (const listener of listeners) listener.stop();
    };
    stopAll();
    // A connection whose last call just ended is idle and goes with the next round.
    const rounds = setInterval(stopAll, 50);
    try {
      if (await endsWithin(graceMs, closed)) return;
      calls.cutAll(goodbye);
      await endsWithin(FLUSH_MS, closed);
    } finally {
      clearInterval(rounds);
    }
  };
  let closing: Promise<void> | undefined;
  const drain = async (graceMs: number): Promise<void> => {
    closing ??= end(graceMs).finally(() => parts.disposeAsync());
    await closing;
  };
  const close = (): Promise<void> => drain(0);
  const doorAddresses = apart.map(({ address }) => address);
  return {
    grpcAddress,
    httpAddress,
    metricsAddress,
    doorAddresses,
    metrics,
    drain,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function firstOf<Item, T>(items: readonly Item[], look: (item: Item) => T | undefined): T | undefined {
  for (const item of items) {
    const found = look(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
