import { hash } from "node:crypto";
import {
  type AuditEvent,
  type NetworkList,
  Sandbox,
  SandboxClient,
  SandboxError,
  type SandboxInfo,
} from "@agentfense/sdk";
import { jsonOf } from "../body.ts";
import { type DoorCall, engineOver } from "../door.ts";
import * as shape from "../shape.ts";
import type { SandboxAccess } from "./access.ts";
import { keyOf } from "./address.ts";
import { E2bFailure, notOffered } from "./failure.ts";
import { networkOf } from "./network.ts";
import { Once } from "./once.ts";
import { HOME } from "./paths.ts";
import { logEntryOf, logLineOf, metricsOf } from "./reports.ts";
import {
  AUTO_RESUME,
  baseMessage,
  detailMessage,
  ENVD_VERSION,
  isOurs,
  isRunning,
  METADATA,
  PRIVATE_PORTS,
  resourcesMessage,
  TEMPLATE,
} from "./sandbox-message.ts";
import { type E2bTemplate, type E2bTemplates, EVERYTHING } from "./templates.ts";

// What clients call with their key: the lives of sandboxes.

export interface ControlOptions {
  readonly templates: E2bTemplates;
  readonly access: SandboxAccess;
  readonly publicPorts: boolean;
}

interface ControlCall {
  readonly client: SandboxClient;
  readonly call: DoorCall;
  readonly request: Request;
  readonly query: URLSearchParams;
  /** In the path. */
  readonly id: string;
  /** The body, {} where there is none. */
  readonly body: unknown;
}

type Handler = (call: ControlCall) => Promise<Response>;

/** Seconds. */
const TIMEOUT = { v1: 15, v2: 300 };
/** Its time counts from when it runs, and it has this to get there. */
const STARTING_MS = 60_000;
/** A sandbox that was paused is kept so long; there is no end of it at E2B either. */
const PAUSED_MS = 30 * 24 * 3600 * 1000;
const LONGEST_S = 365 * 24 * 3600;

const anything = new shape.Shape<unknown>((value) => value);
const seconds = shape.number().min(0).max(LONGEST_S);
const createShape = shape.object({
  templateID: shape.string().min(1).max(256),
  timeout: seconds.optional(),
  metadata: shape.record(shape.string()).default({}),
  envVars: shape.record(shape.string()).default({}),
  autoPause: shape.boolean().default(false),
  autoResume: shape.object({ enabled: shape.boolean().default(false) }).optional(),
  allow_internet_access: shape.boolean().optional(),
  network: shape.record(anything).optional(),
  mcp: shape.object({}).optional(),
  iam: shape.object({}).optional(),
  volumeMounts: shape.list(shape.object({})).default([]),
});
const networkShape = shape.record(anything);
const timeoutShape = shape.object({ timeout: seconds.default(TIMEOUT.v1) });
const durationShape = shape.object({ duration: seconds.default(TIMEOUT.v1) });

/** "PUT /sandboxes/{id}/network" */
type Routes = Readonly<Record<string, Handler>>;

export function controlRoutes({ templates, access, publicPorts }: ControlOptions): Routes {
  const emptyCodebases = new Map<string, Promise<string>>();
  const once = new Once<SandboxInfo>();

  /** What lets in to a sandbox, and where its ports have their names. */
  function entrance({ request }: ControlCall, info: SandboxInfo): object {
    const granted = { sandboxId: info.id, key: keyIn(request.headers) };
    if (publicPorts && info.labels[PRIVATE_PORTS] === undefined) access.openPorts(granted);
    return {
      envdAccessToken: access.token(granted),
      trafficAccessToken: access.token(granted, "traffic"),
      domain: domainOf(request),
    };
  }

  function created(call: ControlCall, info: SandboxInfo, status: number): Response {
    return Response.json({ ...baseMessage(info), ...entrance(call, info) }, { status });
  }

  function create(byDefault: number): Handler {
    return async (call) => {
      const {
        request,
        call: { caller },
      } = call;
      const named = request.headers.get("idempotency-key");
      if (named === null) return created(call, await make(call, byDefault), 201);
      const asked = [caller.ownerId, caller.role, caller.keyId, named, byDefault, call.body];
      return created(call, await once.run(hash("sha256", JSON.stringify(asked)), () => make(call, byDefault)), 201);
    };
  }

  async function make(call: ControlCall, byDefault: number): Promise<SandboxInfo> {
    const given = shape.parsed(createShape, withoutNulls(call.body), refusalOf);
    if (given.mcp !== undefined) throw notOffered("an MCP gateway");
    if (given.iam !== undefined) throw notOffered("iam");
    if (given.volumeMounts.length > 0) throw notOffered("mounting volumes");
    const template = Object.hasOwn(templates, given.templateID) ? templates[given.templateID] : undefined;
    if (template === undefined) {
      const message = `template '${given.templateID}' not found: this server has ${Object.keys(templates).join(", ")}`;
      throw new E2bFailure("not_found", message);
    }
    const { client } = call;
    const { signal } = call.request;
    const { codebase, ...rest } = template;
    const timeoutMs = Math.max(given.timeout ?? byDefault, 0.001) * 1000;
    const asked = networkOf(given.network, given.allow_internet_access);
    const info = await client.createSandbox(
      {
        ...rest,
        ...(template.preset === undefined && template.permissions === undefined ? { permissions: EVERYTHING } : {}),
        ...(asked === undefined ? {} : { network: asked }),
        codebaseId: codebase === undefined ? await emptyCodebase(call) : await codebaseOf(call, codebase),
        workspaceHome: HOME,
        // What agents leave in their home is no change that anybody asked to have in a codebase.
        sync: "manual",
        env: given.envVars,
        pauseAtExpiry: given.autoPause,
        expiresInMs: Math.max(timeoutMs, STARTING_MS),
        labels: {
          [TEMPLATE]: given.templateID,
          ...(given.autoResume?.enabled ? { [AUTO_RESUME]: "true" } : {}),
          ...(given.network?.allowPublicTraffic === false ? { [PRIVATE_PORTS]: "true" } : {}),
          ...Object.fromEntries(Object.entries(given.metadata).map(([name, value]) => [METADATA + name, value])),
        },
      },
      { signal },
    );
    try {
      await client.startSandbox(info.id, { signal });
      return await client.updateExpiry(info.id, timeoutMs, { signal });
    } catch (error) {
      await client.destroySandbox(info.id).catch(() => {}); // the reason why it does not start is what is told
      throw error;
    }
  }

  /** One for each owner, which stays empty: what sandboxes write is theirs. */
  async function emptyCodebase({ client, call }: ControlCall): Promise<string> {
    const { ownerId } = call.caller;
    const key = JSON.stringify(ownerId ?? null);
    const known = emptyCodebases.get(key) ?? findEmptyCodebase(client, ownerId);
    emptyCodebases.set(key, known);
    try {
      const id = await known;
      return (await client.getCodebase(id)).id;
    } catch (error) {
      emptyCodebases.delete(key);
      if (!(error instanceof SandboxError) || error.code !== "CODEBASE_NOT_FOUND") throw error;
      return await findEmptyCodebase(client, ownerId);
    }
  }

  const connect: Handler = async (call) => {
    const { timeout } = shape.parsed(timeoutShape, withoutNulls(call.body), refusalOf);
    const { client, id } = call;
    const { signal } = call.request;
    const info = await ours(call);
    const isPaused = info.status === "paused" && !isRunning(info);
    if (isPaused) await client.resumeSandbox(id, { signal });
    else if (!isRunning(info)) throw new E2bFailure("not_found", `sandbox ${id} does not run`);
    const options = { extendOnly: !isPaused, signal };
    return created(call, await client.updateExpiry(id, Math.max(timeout, 1) * 1000, options), isPaused ? 201 : 200);
  };

  const extend =
    (read: (body: unknown) => number, extendOnly: boolean): Handler =>
    async (call) => {
      await ours(call);
      await call.client.updateExpiry(call.id, Math.max(read(withoutNulls(call.body)), 0.001) * 1000, { extendOnly });
      return nothing();
    };

  return {
    "POST /sandboxes": create(TIMEOUT.v1),
    "POST /v2/sandboxes": create(TIMEOUT.v2),
    "GET /sandboxes": async (call) => Response.json((await listed(call, ["running"])).map(detailMessage)),
    "GET /v2/sandboxes": async (call) => {
      const { query } = call;
      const states = (query.get("state") ?? "running,paused").split(",");
      const limit = Math.min(Math.max(Math.trunc(Number(query.get("limit") ?? 100)) || 100, 1), 100);
      const all = await listed(call, states);
      const after = query.get("nextToken");
      const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
      if (after !== null && from === 0)
        throw new E2bFailure("invalid_argument", "the page begins with no sandbox of yours");
      const page = all.slice(from, from + limit);
      const next = from + limit < all.length ? { "x-next-token": page.at(-1)!.id } : {};
      return Response.json(page.map(detailMessage), { headers: next as Record<string, string> });
    },
    "GET /sandboxes/{id}": async (call) => {
      const info = await ours(call);
      return Response.json({ ...detailMessage(info), ...entrance(call, info) });
    },
    "DELETE /sandboxes/{id}": async (call) => {
      await ours(call);
      await call.client.destroySandbox(call.id);
      return nothing();
    },
    "POST /sandboxes/{id}/timeout": extend((body) => shape.parsed(timeoutShape, body, refusalOf).timeout, false),
    "POST /sandboxes/{id}/refreshes": extend((body) => shape.parsed(durationShape, body, refusalOf).duration, true),
    "POST /sandboxes/{id}/connect": connect,
    "POST /v2/sandboxes/{id}/connect": connect,
    "POST /sandboxes/{id}/resume": connect,
    "POST /sandboxes/{id}/pause": async (call) => {
      const info = await ours(call);
      if (info.status === "paused" && !isRunning(info))
        throw new E2bFailure("already_exists", `sandbox ${call.id} is already paused`);
      await call.client.pauseSandbox(call.id);
      await call.client.updateExpiry(call.id, PAUSED_MS, { extendOnly: true }).catch((error: unknown) => {
        // The server allows less: then it ends when it would have ended.
        if (!(error instanceof SandboxError) || error.code !== "INVALID_ARGUMENT") throw error;
      });
      return nothing();
    },
    "GET /sandboxes/{id}/metrics": async (call) => {
      const info = await ours(call);
      if (!isRunning(info)) return Response.json([]);
      const { signal } = call.request;
      const sandbox = await Sandbox.connect(info.id, { engine: engineOver(call.call.transport), signal });
      const nowS = Date.now() / 1000;
      const [start, end] = [numberIn(call.query, "start", 0), numberIn(call.query, "end", nowS + 1)];
      // One moment, the present: nothing is measured before somebody asks.
      return Response.json(start > nowS || end < Math.floor(nowS) ? [] : [await metricsOf(sandbox, signal)]);
    },
    "GET /sandboxes/{id}/logs": async (call) => {
      const events = await eventsOf(call, "start");
      return Response.json({ logs: events.map(logLineOf), logEntries: events.map(logEntryOf) });
    },
    "GET /v2/sandboxes/{id}/logs": async (call) => {
      const events = await eventsOf(call, "cursor");
      return Response.json({ logs: events.map(logEntryOf) });
    },
    "PUT /sandboxes/{id}/network": async (call) => {
      const info = await ours(call);
      const given = shape.parsed(networkShape, withoutNulls(call.body), refusalOf);
      const { allow_internet_access: internet, ...options } = given;
      if (internet !== undefined && typeof internet !== "boolean")
        throw refusalOf("allow_internet_access: should be true or false");
      const asked = networkOf(options, internet);
      const isSame = asked === undefined ? info.network !== "filtered" : asked === "none" && info.network === "none";
      if (isSame) return nothing();
      if (asked === undefined || info.network !== "filtered") {
        const message = `a sandbox whose network is ${info.network} keeps that: only the list of hosts of one made with such a list can change`;
        throw new E2bFailure("invalid_argument", message);
      }
      await call.client.updateNetwork(call.id, asked === "none" ? { allow: [] } : (asked as NetworkList));
      return nothing();
    },
    "GET /templates": async () => Response.json(Object.entries(templates).map(templateMessage)),
  };
}

/** Answers what goes without the prefix: "/v2/sandboxes". */
export async function answerControl(routes: Routes, path: string, request: Request, call: DoorCall): Promise<Response> {
  const [, version = "", id, rest = ""] = /^(\/v2)?\/sandboxes\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  const name = `${request.method} ${id === undefined ? path : `${version}/sandboxes/{id}${rest}`}`;
  const handler = Object.hasOwn(routes, name) ? routes[name] : undefined;
  if (handler === undefined) throw notOffered(`${request.method} ${path}`);
  const client = new SandboxClient({ engine: engineOver(call.transport) });
  const query = new URL(request.url).searchParams;
  const body = request.method === "POST" || request.method === "PUT" ? ((await jsonOf(request)) ?? {}) : {};
  return await handler({ client, call, request, query, id: id ?? "", body });
}

/** The API key of a request, which the server has found to be valid. */
function keyIn(headers: Headers): string {
  const bearer = /^Bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "")?.[1];
  return bearer ?? keyOf(headers.get("x-api-key")?.trim() ?? "");
}

/** The host names of ports are below it. */
function domainOf({ url }: Request): string {
  const { port } = new URL(url);
  return port === "" ? "localhost" : `localhost:${port}`;
}

/** A sandbox that was made by a client of E2B. The others are not there. */
async function ours({ client, id, request }: ControlCall): Promise<SandboxInfo> {
  const missing = (): E2bFailure => new E2bFailure("not_found", `sandbox ${id} not found`);
  try {
    const info = await client.getSandbox(id, { signal: request.signal });
    if (isOurs(info)) return info;
  } catch (error) {
    const isUnknown = error instanceof SandboxError && ["SANDBOX_NOT_FOUND", "INVALID_ARGUMENT"].includes(error.code);
    throw isUnknown ? missing() : error;
  }
  throw missing();
}

const MOST_EVENTS = 1000;

/** From a time in milliseconds on, oldest first; the other way round where that is asked. */
async function eventsOf(call: ControlCall, from: "start" | "cursor"): Promise<readonly AuditEvent[]> {
  await ours(call);
  const { client, query, id, request } = call;
  const limit = Math.min(Math.max(Math.trunc(numberIn(query, "limit", MOST_EVENTS)), 1), MOST_EVENTS);
  const fromMs = numberIn(query, from, Number.NaN);
  const isBackward = query.get("direction") === "backward";
  const when = Number.isNaN(fromMs) ? {} : isBackward ? { before: new Date(fromMs) } : { after: new Date(fromMs) };
  const options = { sandboxId: id, ...when, signal: request.signal };
  const found: AuditEvent[] = [];
  for await (const event of client.listEvents(options)) {
    found.push(event);
    if (found.length > limit) found.shift();
    if (found.length === limit && !isBackward) break;
  }
  return isBackward ? found.reverse() : found;
}

function numberIn(query: URLSearchParams, name: string, byDefault: number): number {
  const given = query.get(name);
  const value = given === null || given === "" ? byDefault : Number(given);
  if (given !== null && !(Math.abs(value) < 8.64e15)) throw refusalOf(`${name}: should be a number`);
  return value;
}

/** Newest first, unless `order` says otherwise. */
async function listed({ client, query }: ControlCall, states: readonly string[]): Promise<SandboxInfo[]> {
  const wanted = [...metadataIn(query.get("metadata") ?? "")].map(([name, value]) => [METADATA + name, value]);
  const found = await client.listSandboxes({ labels: Object.fromEntries(wanted) }).toArray();
  const template = query.get("template");
  const after = query.get("startedAfter");
  const afterMs = after === null ? Number.NEGATIVE_INFINITY : Date.parse(after);
  if (Number.isNaN(afterMs)) throw refusalOf("startedAfter: should be a date");
  const direction = query.get("order") === "asc" ? -1 : 1;
  const startOf = ({ startedAt, createdAt }: SandboxInfo): number => (startedAt ?? createdAt).getTime();
  return found
    .filter((info) => isOurs(info) && states.includes(isRunning(info) ? "running" : info.status))
    .filter(({ labels }) => template === null || labels[TEMPLATE] === template)
    .filter((info) => startOf(info) > afterMs)
    .sort((a, b) => direction * (startOf(b) - startOf(a) || (a.id < b.id ? -1 : 1)));
}

/** A query in a query, whose parts are escaped once more. */
function* metadataIn(text: string): Generator<[string, string]> {
  for (const pair of decoded(text).split("&")) {
    const at = pair.indexOf("=");
    if (at > 0) yield [decoded(pair.slice(0, at)), decoded(pair.slice(at + 1))];
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** By its id or, among those of the caller, by its name. */
async function codebaseOf({ client, request }: ControlCall, named: string): Promise<string> {
  if (/^cb_[0-9a-f]+$/.test(named)) return named;
  for await (const codebase of client.listCodebases({ signal: request.signal })) {
    if (codebase.name === named) return codebase.id;
  }
  throw new E2bFailure("not_found", `the template's codebase ${JSON.stringify(named)} is not there, or not yours`);
}

const EMPTY_NAME = "e2b-base";

async function findEmptyCodebase(client: SandboxClient, ownerId: string | undefined): Promise<string> {
  for await (const codebase of client.listCodebases()) {
    const isTheirs = ownerId === undefined ? codebase.ownerId === "e2b" : codebase.ownerId === ownerId;
    if (codebase.name === EMPTY_NAME && isTheirs) return codebase.id;
  }
  // An administrator has no name of his own.
  const owner = ownerId === undefined ? { ownerId: "e2b" } : {};
  return (await client.createCodebase({ name: EMPTY_NAME, ...owner })).id;
}

function templateMessage([name, { resources = {} }]: readonly [string, E2bTemplate]): object {
  const never = new Date(0).toISOString();
  return {
    ...{ templateID: name, buildID: name, aliases: [name], names: [name], public: false, buildStatus: "ready" },
    ...{ ...resourcesMessage(resources), spawnCount: 0, buildCount: 1, envdVersion: ENVD_VERSION },
    ...{ createdAt: never, updatedAt: never, lastSpawnedAt: null, createdBy: null },
  };
}

function nothing(): Response {
  return new Response(null, { status: 204 });
}

function refusalOf(problem: string): Error {
  return new E2bFailure("invalid_argument", problem);
}

/** For Python's clients null is the same as absent. */
function withoutNulls(given: unknown): unknown {
  if (typeof given !== "object" || given === null) return given;
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}
