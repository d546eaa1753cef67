import { Sandbox, SandboxError, type SandboxErrorCode } from "@agentfense/sdk";
import { bodyOf, jsonOf } from "../body.ts";
import { Budget } from "../budget.ts";
import { type Door, type DoorCall, engineOver } from "../door.ts";
import type { Problem } from "../shape.ts";
import { AIO_PREFIX, aioKeyIn } from "./address.ts";
import { BROWSER_ROUTES, noBrowser } from "./browser.ts";
import { CallerStates } from "./caller-state.ts";
import { CODE_ROUTES } from "./code/routes.ts";
import { BASH_ROUTES } from "./commands/bash.ts";
import { SHELL_ROUTES } from "./commands/shell.ts";
import { accepted, Refusal, refusalOf, refused, unprocessable } from "./envelope.ts";
import { CONTENT_ROUTES } from "./files/content.ts";
import { EDITOR_ROUTES } from "./files/editor.ts";
import { GREP_ROUTES } from "./files/grep.ts";
import { TREE_ROUTES } from "./files/tree.ts";
import { WATCH_ROUTES } from "./files/watch.ts";
import type { AioDoorOptions } from "./options.ts";
import { findRoute, type Route } from "./route.ts";
import { SANDBOX_ROUTES } from "./sandbox-info.ts";

const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** As many bodies of the largest size may be on their way at a time. */
const MAX_BODIES = 8;
const MAX_SESSIONS = 10;
const IDLE_MS = 30 * 60_000;
/** Told of one request. */
const MOST_PROBLEMS = 100;

const ROUTES: readonly Route[] = [
  ...SANDBOX_ROUTES,
  ...SHELL_ROUTES,
  ...BASH_ROUTES,
  ...CONTENT_ROUTES,
  ...TREE_ROUTES,
  ...GREP_ROUTES,
  ...EDITOR_ROUTES,
  ...WATCH_ROUTES,
  ...CODE_ROUTES,
  ...BROWSER_ROUTES,
];

/**
 * A server's sandboxes for clients of the AIO sandbox's HTTP API, each at `/aio/SANDBOX_ID`. All is done through the SDK as
 * the caller: rules and roles are the server's to enforce, on every call.
 */
export function aioDoor(options: AioDoorOptions = {}): Door {
  const { maxBodyBytes = MAX_BODY_BYTES, maxSessions = MAX_SESSIONS, idleMs = IDLE_MS } = options;
  const places = new CallerStates({ maxSessions, idleMs });
  const bodies = new Budget(MAX_BODIES * maxBodyBytes);

  async function answer(request: Request, call: DoorCall): Promise<Response> {
    const { sandboxId, path, query } = targetOf(request);
    const sandbox = await connect(sandboxId, call, request.signal).catch(async (error: unknown) => {
      if (isUnknown(error)) await places.drop(call.caller, sandboxId);
      throw error;
    });
    if (path === "mcp" || path === "v1/mcp") return await answerMcp(sandbox, request, call);
    const found = findRoute(ROUTES, request.method, path);
    if (found === "method") throw new Refusal("Method Not Allowed", { status: 405 });
    if (found === undefined)
      throw path.startsWith("v1/browser/") ? noBrowser() : new Refusal("Not Found", { status: 404 });
    const { route, parameters } = found;
    using bounded = await bodyOf(request, { limit: maxBodyBytes, budget: bodies });
    const given = await givenTo(route, bounded.request, query);
    if (given instanceof Response) return given;
    const place = places.of(call.caller, sandboxId);
    const result = await route.run({ sandbox, place, parameters, request: bounded.request, options }, given.input);
    return result instanceof Response ? result : accepted(result);
  }

  async function answerMcp(sandbox: Sandbox, request: Request, call: DoorCall): Promise<Response> {
    if (options.mcp !== undefined) return await options.mcp(sandbox, request, call);
    throw new Refusal("there is no MCP server here", {
      status: 501,
      hint: "agentfense serve has the one of the package @agentfense/agent, where that is installed",
    });
  }

  return {
    prefix: AIO_PREFIX,
    keyIn: aioKeyIn,
    answer: async (request, call) => {
      try {
        return await answer(request, call);
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal.status === 500 && !request.signal.aborted) options.onError?.(error);
        return refused(refusal);
      }
    },
    close: () => places.close(),
  };
}

/** "/aio/sb_1/v1/sandbox" */
function targetOf(request: Request): {
  readonly sandboxId: string;
  readonly path: string;
  readonly query: URLSearchParams;
} {
  const { pathname, searchParams } = new URL(request.url);
  const [sandboxId = "", ...rest] = pathname.slice(AIO_PREFIX.length).split("/").map(decoded);
  return { sandboxId, path: rest.join("/"), query: searchParams };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Refusal("Not Found", { status: 404 });
  }
}

/** Asks the server whether this caller may know of the sandbox, for each request anew. */
async function connect(sandboxId: string, { transport }: DoorCall, signal: AbortSignal): Promise<Sandbox> {
  try {
    return await Sandbox.connect(sandboxId, { engine: engineOver(transport), signal });
  } catch (error) {
    throw isUnknown(error) ? new Refusal("there is no such sandbox", { status: 404 }) : error;
  }
}

const UNKNOWN: ReadonlySet<SandboxErrorCode> = new Set(["SANDBOX_NOT_FOUND", "INVALID_ARGUMENT"]);

function isUnknown(error: unknown): boolean {
  if (error instanceof Refusal) return error.status === 404;
  return error instanceof SandboxError && UNKNOWN.has(error.code);
}

async function givenTo(
  route: Route,
  request: Request,
  query: URLSearchParams,
): Promise<{ readonly input: unknown } | Response> {
  const { input, inputFrom } = route;
  if (input === undefined) return { input: undefined };
  const given = inputFrom === "query" ? Object.fromEntries(query) : await jsonOf(request);
  if (given === undefined) return unprocessable([{ loc: ["body"], msg: "JSON decode error", type: "json_invalid" }]);
  const problems: Problem[] = [];
  const value = input.read(withoutNulls(given), [inputFrom], problems);
  return problems.length === 0 ? { input: value } : unprocessable(problems.slice(0, MOST_PROBLEMS));
}

/** For AIO's clients null is the same as absent. */
function withoutNulls(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}
