import { join } from "node:path";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { openStateDirectory } from "./isolation/instance/instance.ts";
import { TemporaryHome } from "./isolation/instance/temporary-home.ts";
import type { IsolationOptions } from "./isolation/isolation.ts";
import { JobThread } from "./isolation/jobs/thread.ts";
import { openRuntime } from "./open-runtime.ts";
import type { Caller } from "./runtime/caller.ts";
import { LocalDirectories } from "./runtime/codebases/local/directories.ts";
import type { Log, LogLine } from "./runtime/log.ts";
import { PortTokens } from "./runtime/ports/tokens.ts";
import type { SandboxesOptions } from "./runtime/sandboxes/options.ts";
import { toRuntimeError } from "./runtime/sandboxes/refusals.ts";
import { SealingKeys } from "./runtime/secrets/sealing.ts";
import { openMemoryStore } from "./runtime/store/sqlite/open-sqlite-store.ts";
import type { NetworkName, RuntimeName } from "./runtime/store/store.ts";
import { httpPortLinks, portServer } from "./service/http/port-server.ts";
import { toConnectError } from "./service/rpc/connect-error.ts";
import { callerKey } from "./service/rpc/handlers.ts";
import { createMemoryTransport } from "./service/rpc/memory-transport.ts";
import type { CallContext } from "./service/rpc/one-answer.ts";
import { registerServices } from "./service/rpc/register.ts";
import { paced, UNHURRIED } from "./service/upload-pace.ts";

export interface EmbeddedOptions {
  /** Where a directory for deltas and codebases is made, which goes with the server; default: the system's place for such. */
  readonly stateDirectory?: string | undefined;
  /** The default one first, which has to be there; the others when a sandbox asks for one. */
  readonly runtimes: readonly [RuntimeName, ...RuntimeName[]];
  readonly docker?: IsolationOptions["docker"] | undefined;
  /** Those that a sandbox may ask for, beside none. */
  readonly networks: readonly NetworkName[];
  readonly toolchains?: SandboxesOptions["toolchains"];
  readonly defaultTimeoutMs?: number | undefined;
  readonly maxTimeoutMs?: number | undefined;
  /** For tests: what filtered networks take for the internet. */
  readonly internet?: IsolationOptions["internet"] | undefined;
  readonly log: Log;
}

/** A server without a door: the program around it is its only client. */
export interface EmbeddedServer {
  /** All services of the contract, as an administrator of a server without keys has them. */
  readonly transport: Transport;
  /**
   * Makes a directory a codebase as it is, and gives the id. Sandboxes show what is there and keep what they write for
   * themselves, until it is applied. What others change there shows from the next command on.
   */
  openDirectory(directory: string, options?: { readonly name?: string }): Promise<string>;
  /** Ends everything that runs. */
  shutDown(): Promise<void>;
}

const PROGRAM: Caller = { ownerId: undefined, role: "admin" };
/** Nobody reads further back in a log that ends with the process. */
const MOST_EVENTS = 10_000;
/** Nothing is cut in the process: it is far above what the isolation keeps of a command's output. */
const MESSAGE_BYTES = 256 * 1024 * 1024;

/**
 * Puts a server together in this process. It keeps no process alive: whoever waits for an answer has to. What fails here is
 * told as failed calls are.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const { log } = options;
  try {
    return await open(options);
  } catch (error) {
    throw toConnectError(toRuntimeError(error), { log });
  }
}

async function open({ runtimes, networks, log, ...options }: EmbeddedOptions): Promise<EmbeddedServer> {
  await using undo = new AsyncDisposableStack();
  const { path: directory } = undo.use(
    await TemporaryHome.create({ prefix: "agentfense-engine-", parent: options.stateDirectory }),
  );
  const store = undo.use(openMemoryStore());
  const jobs = undo.use(new JobThread({ threads: 1, holdsProcess: false }));
  const local = new LocalDirectories({ reserved: [directory, await openStateDirectory()] });
  const runtime = undo.use(
    await openRuntime({
      store,
      jobs,
      log: (entry) => log(entry as LogLine),
      local,
      audit: { retention: { maxAgeMs: 0, maxEvents: MOST_EVENTS }, alerts: {}, log: () => {} },
      codebases: { directory: join(directory, "codebases") },
      isolation: {
        ...(options.docker === undefined ? {} : { docker: options.docker }),
        ...(options.internet === undefined ? {} : { internet: options.internet }),
        opensOnDemand: true,
        timeLimits: {
          defaultTimeoutMs: options.defaultTimeoutMs,
          maxTimeoutMs: options.maxTimeoutMs,
          maxTimeoutSetting: "the engine's maxTimeoutMs",
        },
        watchdog: true,
        holdsProcess: false,
      },
      secrets: { sealing: SealingKeys.ofProcess() },
      sandboxes: {
        runtimes,
        allowedBy: "program",
        toolchains: options.toolchains,
        deltaDirectory: join(directory, "deltas"),
        defaults: {
          expirationMs: 0,
          maxExpirationMs: Number.POSITIVE_INFINITY,
          maxPerOwner: 0,
          maxSessionsPerSandbox: 0,
          networks,
          networkAllow: undefined,
          docker: { networks, network: "none" },
        },
      },
      keysRequired: false,
    }),
  );
  const limits = { readMaxBytes: MESSAGE_BYTES, writeMaxBytes: MESSAGE_BYTES };
  const tokens = new PortTokens();
  const ports = undo.use(portServer({ sandboxes: runtime.sandboxes, keys: undefined, tokens, log }));
  const links = httpPortLinks({ ...runtime, ...runtime.service, tokens, origin: () => ports.origin() });
  const service = { ...runtime.service, links };
  const transport = createMemoryTransport({
    register: (router) => registerServices(router, service, { log, maxMessageBytes: MESSAGE_BYTES }),
    oneAnswer: { ...limits, pace: UNHURRIED, gate: asProgram, supervise: ({ signal }, work) => work(signal) },
    streams: { ...limits, requestGate: asProgram, interceptors: [endingWithItsSignal] },
  });
  const parts = undo.move();
  let ending: Promise<void> | undefined;
  return {
    transport,
    async openDirectory(path, given = {}) {
      try {
        return (await local.open(path, given)).id;
      } catch (error) {
        throw toConnectError(error, { log });
      }
    },
    shutDown() {
      ending ??= parts.disposeAsync();
      return ending;
    },
  };
}

async function asProgram({ values }: Pick<CallContext, "values">): Promise<void> {
  values.set(callerKey, PROGRAM);
}

/** A request that is given up ends with its signal, even if the program never gives its next message. */
const endingWithItsSignal: Interceptor = (next) => (request) =>
  next(request.stream ? { ...request, message: paced(request.message, UNHURRIED, request.signal) } : request);
