import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { IsolationOptions } from "./isolation/isolation.ts";
import { JobThread } from "./isolation/jobs/thread.ts";
import { parseNetworkRule } from "./isolation/network/policy.ts";
import { openRuntime } from "./open-runtime.ts";
import { PortTokens, readTokenSecret } from "./runtime/ports/tokens.ts";
import { RESOURCE_FIELDS } from "./runtime/sandboxes/creation.ts";
import { SealingKeys } from "./runtime/secrets/sealing.ts";
import { openServerStore } from "./runtime/store/open-store.ts";
import type { ResourceRecord, RuntimeName } from "./runtime/store/store.ts";
import { ConfigurationError } from "./service/configuration/keys.ts";
import type { ServerConfig } from "./service/configuration/schema.ts";
import type { Door } from "./service/http/doors.ts";
import { httpPortLinks, portServer } from "./service/http/port-server.ts";
import { Metrics } from "./service/metrics/metrics.ts";
import { registerServices } from "./service/rpc/register.ts";
import { type StartServiceOptions, startService } from "./service/start-service.ts";

export interface RunningServer {
  /** "127.0.0.1:9000", with the real port, or "unix:/path". */
  readonly grpcAddress: string;
  readonly httpAddress: string | undefined;
  readonly metricsAddress: string | undefined;
  /** The addresses of the doors that have listeners of their own. */
  readonly doorAddresses: readonly string[];
  /** Sandboxes that ran when the last server ended are running again, or in ERROR. */
  readonly ready: Promise<void>;
  /** It may not be the only server of its database any more, and has to be shut down at once. */
  readonly lost: Promise<Error>;
  /** Lets running calls end for a while, then ends everything. What ran will run again after the next start. */
  shutDown(): Promise<void>;
}

/** How long calls may go on after the server was asked to end; with the rest it stays below ten seconds. */
const GRACE_MS = 1_500;

/** Puts the whole server together. */
export async function openServer(
  config: ServerConfig,
  /** The operator's log: entries with a level and a message, and whatever else there is to know. */
  options: {
    readonly log: (entry: object) => void;
    readonly doors?: readonly Door[] | undefined;
    /**
     * All clients are the program that started the server, and it ends with that. Then homes are directories, as the program may use them,
     * secrets are sealed with a key that nobody keeps, and what a runtime lacks is told by the first sandbox that asks for it. Otherwise homes are names,
     * the key is the operator's, and all runtimes have to be there.
     */
    readonly isPrivate?: boolean | undefined;
    /** For tests: what filtered networks take for the internet. */
    readonly internet?: IsolationOptions["internet"] | undefined;
  },
): Promise<RunningServer> {
  const { log, doors = [], isPrivate = false, internet } = options;
  const tls = await readTls(config);
  const sealing = isPrivate ? SealingKeys.ofProcess() : await readSealingKeys(config);
  await using undo = new AsyncDisposableStack();

  const { codebase_path: codebaseDirectory, mount_path: mountDirectory, database_lease: leaseMs } = config.storage;
  const deltaDirectory = join(mountDirectory, "delta");
  const directories = { codebases: codebaseDirectory, mounts: mountDirectory, deltas: deltaDirectory };
  const { store, lost } = undo.use(await openServerStore(config.storage, { ...directories, leaseMs, log }));
  const jobs = undo.use(new JobThread());
  const metrics: Metrics = undo.use(
    new Metrics({
      sandboxCounts: () => runtime.sandboxes.counts(),
      counters: () => runtime.isolation.counters(),
      deltaBytes: () => runtime.sandboxes.deltaBytes(),
    }),
  );
  const runtime = undo.use(
    await openRuntime({
      store,
      jobs,
      log,
      audit: auditOptions(config),
      codebases: { directory: codebaseDirectory, ...codebaseOptions(config) },
      isolation: {
        ...isolationOptions(config),
        ...(internet === undefined ? {} : { internet }),
        watchdog: true,
        opensOnDemand: isPrivate,
      },
      secrets: { sealing, lostKeys: config.secrets.lost_keys },
      sandboxes: {
        runtimes: runtimeNames(config),
        allowedBy: isPrivate ? "environment" : "operator",
        deltaDirectory,
        homeDirectory: isPrivate ? undefined : join(mountDirectory, "homes"),
        fallbackRuntime: config.runtime.fallback || undefined,
        ociRuntime: config.runtime.docker.oci_runtime || undefined,
        defaults: sandboxDefaults(config),
        observe: {
          exec: (durationMs, outcome) => metrics.exec(durationMs, outcome),
          sync: (result, counts) => metrics.sync(result, counts),
          start: (durationMs, ok) => metrics.start(durationMs, ok),
        },
      },
      keysRequired: config.auth.keys === "required",
    }),
  );
  let ready = false;
  const whenReady = runtime.sandboxes.ready.then(() => {
    ready = true;
  });

  const tokens = new PortTokens(await readTokenSecret(portsSecretPath(config.storage)));
  const keys = config.auth.keys === "required" ? runtime.service.keys : undefined;
  const ownPorts = undo.use(portServer({ sandboxes: runtime.sandboxes, keys, tokens, log }));
  let httpOrigin: string | undefined;
  const origin = async (): Promise<string> => httpOrigin ?? (await ownPorts.origin());
  const links = httpPortLinks({ ...runtime, ...runtime.service, tokens, origin });
  const service = await startService({
    ...serviceOptions(config),
    ...(tls === undefined ? {} : { tls }),
    runtime: runtime.service,
    tokens,
    register: (router) => registerServices(router, { ...runtime.service, links }, { log }),
    metrics: { source: metrics, ...(config.server.metrics_addr === "" ? {} : { address: config.server.metrics_addr }) },
    ready: () => ready,
    doors,
    log,
  });
  httpOrigin = originOf(service.httpAddress, config.server);
  for (const message of runtime.isolation.degradations) log({ level: "warn", message });

  const parts = undo.move();
  let ending: Promise<void> | undefined;
  return {
    grpcAddress: service.grpcAddress,
    httpAddress: service.httpAddress,
    metricsAddress: service.metricsAddress,
    doorAddresses: service.doorAddresses,
    ready: whenReady,
    lost,
    shutDown() {
      ending ??= service.drain(GRACE_MS).finally(() => parts.disposeAsync());
      return ending;
    },
  };
}

/** Beside the database where that is a file. */
function portsSecretPath({ database, db_path: path, mount_path: mounts }: ServerConfig["storage"]): string {
  return database === "" ? `${path}.ports` : join(mounts, ".ports");
}

/** The address at which HTTP is served, for others: by a name that the operator allows, where it is all addresses. */
function originOf(
  address: string | undefined,
  { allowed_hosts: names, tls }: ServerConfig["server"],
): string | undefined {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(address ?? "") ?? [];
  if (port === "") return undefined;
  const isWildcard = host === "[::]" || host === "0.0.0.0" || host === "";
  return `${tls.cert_file === "" ? "http" : "https"}://${isWildcard ? (names[0] ?? "localhost") : host}:${port}`;
}

/** The default one first. */
function runtimeNames({ runtime }: ServerConfig): readonly [RuntimeName, ...RuntimeName[]] {
  return [runtime.type, ...runtime.types.filter((name) => name !== runtime.type)];
}

function auditOptions({ audit }: ServerConfig) {
  const never = Number.POSITIVE_INFINITY;
  return {
    retention: { maxAgeMs: audit.retention, maxEvents: audit.max_events },
    alerts: {
      permissionDeniedPerMinute: audit.alerts.denials_per_minute || never,
      sandboxesCreatedPerHour: audit.alerts.sandboxes_per_hour || never,
      sessionDurationMs: audit.alerts.session_duration || never,
      resourceLimitExceededPerMinute: audit.alerts.resource_limit_exceeded ? 0 : never,
    },
  };
}

function codebaseOptions({ storage, limits }: ServerConfig) {
  return {
    limits: {
      maxFileSize: storage.max_file_size,
      maxUploadSize: limits.max_upload_size,
      maxBytesPerOwner: storage.max_bytes_per_owner,
      maxFilesPerOwner: storage.max_files_per_owner,
      maxCodebasesPerOwner: storage.max_codebases_per_owner,
    },
    retention: { versions: storage.keep_versions, bytes: storage.keep_bytes },
  };
}

function isolationOptions({ runtime }: ServerConfig): IsolationOptions {
  const { docker } = runtime;
  return {
    timeLimits: {
      defaultTimeoutMs: runtime.default_timeout || undefined,
      maxTimeoutMs: runtime.max_timeout || undefined,
      maxTimeoutSetting: "the server's runtime.max_timeout",
    },
    ...(runtime.mount_threads === 0 ? {} : { mountThreads: runtime.mount_threads }),
    ...(runtime.bwrap_path === "bwrap" ? {} : { bwrapPath: runtime.bwrap_path }),
    docker: {
      image: docker.default_image,
      allowPull: docker.allow_pull,
      ...(docker.host === "" ? {} : { socketPath: docker.host.replace(/^unix:\/\//, "") }),
      ...(docker.allowed_images.length === 0 ? {} : { allowedImages: docker.allowed_images }),
    },
  };
}

function sandboxDefaults({ sandbox, runtime, limits }: ServerConfig) {
  return {
    expirationMs: sandbox.default_expiration,
    maxExpirationMs: sandbox.max_expiration === 0 ? Number.POSITIVE_INFINITY : sandbox.max_expiration,
    idlePauseMs: sandbox.idle_pause,
    maxPerOwner: sandbox.max_per_user,
    maxHomesPerOwner: sandbox.max_homes_per_user,
    cleanupIntervalMs: sandbox.cleanup_interval,
    maxSessionsPerSandbox: limits.sessions_per_sandbox,
    sync: sandbox.sync_on_completion ? ("on-exec" as const) : ("manual" as const),
    networks: runtime.networks,
    networkAllow: runtime.network_allow.map(parseNetworkRule),
    docker: dockerNetworks(runtime),
    maxResources: resourcesOf({ ...sandbox.max_resources, cpu_shares: 0 }),
    resources: resourcesOf(sandbox.resources),
  };
}

/** Docker sandboxes have a second switch, which the earlier server had alone; its "bridge" is our private network. */
function dockerNetworks({ networks, docker }: ServerConfig["runtime"]) {
  if (!docker.enable_networking) return { networks: [], network: "none" as const };
  const network = docker.network_mode === "bridge" ? "private" : docker.network_mode;
  return { networks: [...networks, network], network };
}

/** 0 is no limit. */
function resourcesOf(resources: ServerConfig["sandbox"]["resources"]): ResourceRecord {
  const limited = Object.entries(RESOURCE_FIELDS).filter(([, field]) => resources[field] !== 0);
  return Object.fromEntries(limited.map(([name, field]) => [name, resources[field]]));
}

function serviceOptions({ server, auth, limits }: ServerConfig) {
  return {
    grpc: { address: server.grpc_addr },
    http: { address: server.http_addr },
    keys: auth.keys,
    allowOpen: server.allow_open,
    allowedHosts: server.allowed_hosts,
    allowedOrigins: server.allowed_origins,
    limits: {
      messageBytes: limits.max_message_size,
      bodyBytes: limits.max_body_size,
      responseBytes: limits.max_response_size,
      uploadIdleMs: limits.upload_idle_timeout,
      uploadMs: limits.upload_timeout,
      streamsPerConnection: limits.streams_per_connection,
      requestsPerSecond: limits.requests_per_second,
      burst: limits.request_burst,
      concurrentCalls: limits.concurrent_calls,
      connections: limits.max_connections,
    },
  };
}

async function readTls({ server: { tls } }: ServerConfig): Promise<StartServiceOptions["tls"]> {
  if (tls.cert_file === "") return undefined;
  const [cert, key, clientCa] = await Promise.all([
    readPem("server.tls.cert_file", tls.cert_file),
    readPem("server.tls.key_file", tls.key_file),
    tls.client_ca_file === "" ? undefined : readPem("server.tls.client_ca_file", tls.client_ca_file),
  ]);
  requirePart("server.tls.cert_file", tls.cert_file, { cert });
  requirePart("server.tls.key_file", tls.key_file, { key });
  requirePart("server.tls.cert_file and server.tls.key_file", `${tls.cert_file}, ${tls.key_file}`, { cert, key });
  if (clientCa === undefined) return { cert, key };
  requirePart("server.tls.client_ca_file", tls.client_ca_file, { ca: clientCa });
  return { cert, key, clientCa };
}

async function readSealingKeys({ secrets }: ServerConfig): Promise<SealingKeys | undefined> {
  const { key_file: path } = secrets;
  if (path === "") return undefined;
  try {
    await using file = await open(path, "r");
    if (((await file.stat()).mode & 0o007) !== 0) throw new Error("every user of this host may read it; chmod 600 it");
    return SealingKeys.parse(await file.readFile("utf8"));
  } catch (error) {
    throw new ConfigurationError([`secrets.key_file: ${path} cannot be used: ${(error as Error).message}`]);
  }
}

async function readPem(setting: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ConfigurationError([`${setting}: ${(error as Error).message}`]);
  }
}

/** OpenSSL says what is wrong with a certificate or a key, but not with which. */
function requirePart(setting: string, path: string, part: SecureContextOptions): void {
  try {
    createSecureContext(part);
  } catch (error) {
    throw new ConfigurationError([`${setting}: cannot be used for TLS: ${path} (${(error as Error).message})`]);
  }
}
