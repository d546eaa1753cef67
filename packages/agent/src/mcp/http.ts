import { createHash, timingSafeEqual } from "node:crypto";
import type { DoorCall } from "@agentfense/doors";
import type { Sandbox } from "@agentfense/sdk";
import { ClientConfirmationService, type McpApproval } from "./client-confirmation.ts";
import { refusal } from "./refusal.ts";
import { McpSessions, type SessionLimits } from "./sessions.ts";
import { type McpSourceOptions, mcpSource } from "./source.ts";

export type McpHttpOptions = McpSourceOptions &
  HttpAccess &
  SessionLimits & {
    /** Told what a caller is not told. Default: nobody. */
    readonly onError?: ((error: unknown) => void) | undefined;
  };

/** Answers requests, and with its disposal ends all sessions. */
export type McpHttpHandler = ((request: Request) => Promise<Response>) & AsyncDisposable;

/** MCP over streamable HTTP, for any server that has requests and responses of the web's kind. */
export function mcpHttpHandler(options: McpHttpOptions): McpHttpHandler {
  const source = mcpSource(options);
  const sessions = new McpSessions(options);
  const handle = async (request: Request): Promise<Response> => {
    try {
      return (
        refuseStranger(request, options) ?? (await sessions.handle(request, { owner: "", open: async () => source }))
      );
    } catch (error) {
      // That somebody went away is no failure of ours.
      if (!request.signal.aborted) options.onError?.(error);
      return refusal(500, "something failed inside");
    }
  };
  return Object.assign(handle, { [Symbol.asyncDispose]: () => sessions[Symbol.asyncDispose]() });
}

export interface HttpAccess {
  /** Expected as `Authorization: Bearer KEY` or `X-Api-Key: KEY`; false leaves that to whoever calls the handler. */
  readonly apiKey: string | false;
  /** Names, without a port, by which this server is called; default: those of the loopback interface. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Pages that may call it: "https://example.com"; default: no page may. */
  readonly allowedOrigins?: readonly string[] | undefined;
}

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Refuses who may not come; undefined: he may. A page of a stranger can make its name point here, but neither the name in
 * `Host` nor its own `Origin` are ones that we expect then.
 */
function refuseStranger({ headers }: Request, access: HttpAccess): Response | undefined {
  const { apiKey, allowedHosts = LOOPBACK, allowedOrigins = [] } = access;
  const host = hostName(headers.get("host"));
  if (host === undefined || !allowedHosts.includes(host)) return refusal(403, "this server is not called by this name");
  const origin = headers.get("origin");
  if (origin !== null && !allowedOrigins.includes(origin)) return refusal(403, "pages from there may not call this");
  if (apiKey === false || isSame(keyIn(headers), apiKey)) return undefined;
  return refusal(401, "the API key is missing or wrong", { "www-authenticate": "Bearer" });
}

/** "[::1]:80" → "[::1]" */
function hostName(host: string | null): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:@/\s]+)(?::\d+)?$/i.exec(host ?? "")?.[1]?.toLowerCase();
}

function keyIn(headers: Headers): string {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
  return bearer ?? headers.get("x-api-key") ?? "";
}

/** Takes as long for a key that is nearly right. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((key) => createHash("sha256").update(key).digest());
  return expected !== "" && timingSafeEqual(a!, b!);
}

/** Answers MCP requests for sandboxes of a server, and with its disposal ends all sessions. */
export type DoorMcp = ((sandbox: Sandbox, request: Request, call: DoorCall) => Promise<Response>) & AsyncDisposable;

const LIMITS: SessionLimits = { maxSessions: 512, maxSessionsOfOne: 16 };

/**
 * MCP for a door of a server: who calls, and whether he may know of the sandbox, was found out for this request. A session is
 * for one sandbox and one caller; what it does is done as him.
 */
export function doorMcp({
  approval,
  ...limits
}: SessionLimits & { readonly approval?: McpApproval | undefined } = {}): DoorMcp {
  const sessions = new McpSessions({ ...LIMITS, ...limits });
  const toRunUnasked = "the server's operator sets server.aio_approve to never";
  const answer = async (sandbox: Sandbox, request: Request, { caller }: DoorCall): Promise<Response> => {
    const owner = JSON.stringify([sandbox.id, caller.ownerId ?? null, caller.role, caller.keyId ?? null]);
    const confirmation = new ClientConfirmationService(approval, { toRunUnasked });
    const open = async () => mcpSource({ sandbox, confirmation });
    return await sessions.handle(request, { owner, open });
  };
  return Object.assign(answer, { [Symbol.asyncDispose]: () => sessions[Symbol.asyncDispose]() });
}
