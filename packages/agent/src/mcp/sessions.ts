import { Buffer } from "node:buffer";
import { randomUUID } from "node:crypto";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import { refusal } from "./refusal.ts";
import { serverFor } from "./server.ts";
import type { McpSource } from "./source.ts";

export interface SessionLimits {
  /** At a time; default 64. */
  readonly maxSessions?: number | undefined;
  /** How many sessions one owner may have; default: as many as there may be. */
  readonly maxSessionsOfOne?: number | undefined;
  /** A session without a request, and without a stream that is open, ends after this; default 30 min. */
  readonly idleMs?: number | undefined;
}

/** Who comes. */
export interface Visitor {
  /** Sessions are their owner's alone: to all others they are not there. */
  readonly owner: string;
  /** Called for a new session. */
  open(): Promise<McpSource>;
}

const MAX_SESSIONS = 64;
const IDLE_MS = 30 * 60_000;
const SESSION_HEADER = "mcp-session-id";

/** The sessions of MCP over streamable HTTP, each with a server of its own. */
export class McpSessions implements AsyncDisposable {
  readonly #sessions = new Map<string, Session>();
  readonly #maxSessions: number;
  readonly #maxSessionsOfOne: number;
  readonly #idleMs: number;
  readonly #opening = new Set<Visitor>();
  #isClosed = false;

  constructor({ maxSessions = MAX_SESSIONS, maxSessionsOfOne = maxSessions, idleMs = IDLE_MS }: SessionLimits = {}) {
    this.#maxSessions = maxSessions;
    this.#maxSessionsOfOne = maxSessionsOfOne;
    this.#idleMs = idleMs;
  }

  /** Answers a request whose sender was found to be this visitor. */
  async handle(request: Request, visitor: Visitor): Promise<Response> {
    if (this.#isClosed) return refusal(503, "this server ends");
    const id = request.headers.get(SESSION_HEADER);
    if (id !== null) {
      const session = this.#sessions.get(id);
      if (session?.owner !== visitor.owner) return refusal(404, "there is no such session: initialize a new one");
      return await session.handle(request);
    }
    if (request.method !== "POST") return refusal(400, `${SESSION_HEADER} is missing`);
    const body = await readJson(request);
    if (body.kind === "refused") return body.response;
    if (!isInitializeRequest(body.value)) return refusal(400, "there is no session yet: send initialize first");
    const begun = [...this.#sessions.values(), ...this.#opening];
    const own = begun.filter(({ owner }) => owner === visitor.owner);
    if (begun.length >= this.#maxSessions || own.length >= this.#maxSessionsOfOne) {
      return refusal(503, `there are ${begun.length} sessions already: end one, or try again later`);
    }
    return await this.#begin(request, body.value, visitor);
  }

  async #begin(request: Request, body: unknown, visitor: Visitor): Promise<Response> {
    this.#opening.add(visitor);
    let session: Session;
    try {
      const server = serverFor(await visitor.open());
      session = await Session.begin(server, visitor.owner, this.#idleMs, () => this.#sessions.delete(session.id));
      this.#sessions.set(session.id, session);
    } finally {
      this.#opening.delete(visitor);
    }
    if (this.#isClosed) await session.close();
    const response = await session.handle(request, body);
    if (!response.ok) await session.close();
    return response;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }
}

class Session {
  readonly id: string;
  readonly owner: string;
  readonly #server: McpServer;
  readonly #transport: WebStandardStreamableHTTPServerTransport;
  readonly #idleMs: number;
  #open = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor(
    id: string,
    owner: string,
    server: McpServer,
    transport: WebStandardStreamableHTTPServerTransport,
    idleMs: number,
  ) {
    this.id = id;
    this.owner = owner;
    this.#server = server;
    this.#transport = transport;
    this.#idleMs = idleMs;
  }

  static async begin(server: McpServer, owner: string, idleMs: number, onEnd: () => void): Promise<Session> {
    const id = randomUUID();
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
    const session = new Session(id, owner, server, transport, idleMs);
    server.server.onclose = () => {
      clearTimeout(session.#timer);
      onEnd();
    };
    await server.connect(transport);
    return session;
  }

  async handle(request: Request, parsedBody?: unknown): Promise<Response> {
    this.#begins();
    try {
      const response = await this.#transport.handleRequest(request, parsedBody === undefined ? {} : { parsedBody });
      if (response.body === null) {
        this.#ends();
        return response;
      }
      const ends = (): void => this.#ends();
      const body = response.body.pipeThrough(new TransformStream({ flush: ends, cancel: ends }));
      return new Response(body, response);
    } catch (error) {
      this.#ends();
      throw error;
    }
  }

  /** Gives up what is being done in it. */
  async close(): Promise<void> {
    await this.#server.close();
  }

  #begins(): void {
    this.#open += 1;
    clearTimeout(this.#timer);
  }

  #ends(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    this.#timer = setTimeout(() => void this.close(), this.#idleMs).unref();
  }
}

const MOST_BYTES = 4 * 1024 * 1024;

type Body =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "refused"; readonly response: Response };

/** The body of a request that should be JSON. */
async function readJson(request: Request): Promise<Body> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of request.body ?? []) {
    length += piece.length;
    if (length > MOST_BYTES) return refused(413, `the body is larger than ${MOST_BYTES} bytes`);
    pieces.push(piece);
  }
  try {
    return { kind: "json", value: JSON.parse(Buffer.concat(pieces).toString("utf8")) as unknown };
  } catch {
    return refused(400, "the body is no JSON");
  }
}

function refused(status: number, message: string): Body {
  return { kind: "refused", response: refusal(status, message) };
}
