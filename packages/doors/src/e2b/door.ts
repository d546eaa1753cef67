import { Sandbox, SandboxError } from "@agentfense/sdk";
import { bodyOf } from "../body.ts";
import { Budget } from "../budget.ts";
import { type Door, type DoorCall, engineOver } from "../door.ts";
import { SandboxAccess } from "./access.ts";
import { e2bEntrance, e2bPlaces, operationOf, SIGNED_PATH } from "./address.ts";
import { answerCode, CODE_PORT } from "./code.ts";
import { answerRpc } from "./connect.ts";
import { answerContent } from "./content.ts";
import { answerControl, controlRoutes } from "./control.ts";
import { E2bFailure, failureAnswer, failureOf, notOffered, SandboxGone } from "./failure.ts";
import { filesystemMethods, Watchers } from "./filesystem.ts";
import { processMethods, Started } from "./processes.ts";
import { AUTO_RESUME, isRunning } from "./sandbox-message.ts";
import { DEFAULT_TEMPLATES, type E2bTemplates } from "./templates.ts";

export interface E2bDoorOptions {
  /** By name; default: `base` and `code-interpreter-v1`, an empty directory where everything may be written. */
  readonly templates?: E2bTemplates | undefined;
  /** Where these clients have a listener of their own, without the prefix. Default: nowhere. */
  readonly address?: string | undefined;
  /** Everybody reaches the ports of these sandboxes by their host names, unless a program wants it otherwise. Default: who has a key or a token. */
  readonly publicPorts?: boolean | undefined;
  /** Default: of its own. */
  readonly access?: SandboxAccess | undefined;
  /** Told what callers are not: failures inside. Default: nobody. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** What was begun in a sandbox by one key. */
interface Begun {
  readonly started: Started;
  readonly watchers: Watchers;
}

const MOST_BEGUN = 1000;
/** Of bodies that are taken whole, all together: forms and single messages. */
const MOST_BODY_BYTES = 512 * 1024 * 1024;
/** What says what a sandbox is to be. */
const LARGEST_CONTROL = 1024 * 1024;
const ENVD_PORT = "49983";

/**
 * A server's sandboxes for clients of E2B, at `/e2b`; and what their URLs are signed for, at `/files`. All is done through the SDK as the
 * caller, whose key is known by itself or by the token of a sandbox, which lets in to that sandbox alone.
 */
export function e2bDoors(options: E2bDoorOptions = {}): readonly Door[] {
  const { access = new SandboxAccess(), publicPorts = false } = options;
  const routes = controlRoutes({ templates: { ...DEFAULT_TEMPLATES, ...options.templates }, access, publicPorts });
  const bodies = new Budget(MOST_BODY_BYTES);
  const begun = new Map<string, Begun>();

  async function answer(request: Request, call: DoorCall, prefix: string): Promise<Response> {
    const url = new URL(request.url);
    const path = `/${url.pathname.slice(prefix.length)}`.replaceAll(/\/{2,}/g, "/");
    const { headers } = request;
    const isControl = headers.get("x-api-key") !== null || /^Bearer /i.test(headers.get("authorization") ?? "");
    if (isControl) {
      using bounded = await bodyOf(request, { limit: LARGEST_CONTROL, budget: bodies });
      return await answerControl(routes, path, bounded.request, call);
    }
    return await answerInside(request, call, path, url.searchParams);
  }

  /** What goes on in a sandbox. */
  async function answerInside(
    request: Request,
    call: DoorCall,
    path: string,
    query: URLSearchParams,
  ): Promise<Response> {
    const granted = accessOf(request, path, query);
    const named = request.headers.get("e2b-sandbox-id");
    if (granted === undefined || (named !== null && named !== granted.sandboxId)) {
      throw new E2bFailure("unauthenticated", "the token is not valid for this sandbox");
    }
    const port = request.headers.get("e2b-sandbox-port") ?? ENVD_PORT;
    if (port !== ENVD_PORT && port !== CODE_PORT) throw notOffered(`the port ${port} below this address`);
    const { sandboxId } = granted;
    const sandbox = await running(sandboxId, call, { signal: request.signal, mayResume: path !== "/health" });
    if (port === CODE_PORT) return await answerCode(sandbox, request, path, bodies);
    if (path === "/health") return new Response(null, { status: 204 });
    if (path === SIGNED_PATH) return await answerContent(sandbox, request, bodies);
    const [, service, name = ""] = /^\/(process\.Process|filesystem\.Filesystem)\/([A-Za-z]+)$/.exec(path) ?? [];
    const { started, watchers } = begunBy(call, sandboxId);
    const methods =
      service === "process.Process" ? processMethods(sandbox, started) : filesystemMethods(sandbox, watchers);
    const method = service !== undefined && Object.hasOwn(methods, name) ? methods[name] : undefined;
    if (method === undefined) throw notOffered(`${request.method} ${path}`);
    return await answerRpc(method, request, bodies);
  }

  function accessOf({ headers, method }: Request, path: string, query: URLSearchParams) {
    const token = headers.get("x-access-token");
    if (token !== null) return access.read(token);
    const traffic = headers.get("e2b-traffic-access-token");
    if (traffic !== null && headers.get("e2b-sandbox-port") === CODE_PORT) return access.read(traffic, "traffic");
    return path === SIGNED_PATH ? access.signerOf(query, operationOf(method)) : undefined;
  }

  /** What one key began another does not find. */
  function begunBy({ caller }: DoorCall, sandboxId: string): Begun {
    const key = JSON.stringify([sandboxId, caller.ownerId ?? null, caller.role, caller.keyId ?? null]);
    const known = begun.get(key) ?? { started: new Started(), watchers: new Watchers() };
    begun.delete(key);
    begun.set(key, known);
    const [oldest] = begun;
    if (begun.size > MOST_BEGUN && oldest !== undefined) {
      begun.delete(oldest[0]);
      oldest[1].watchers.close();
    }
    return known;
  }

  const door = (place: Pick<Door, "prefix" | "address">): Door => ({
    ...place,
    ...e2bEntrance(access),
    answer: async (request, call) => {
      try {
        return await answer(request, call, place.prefix.endsWith("/") ? place.prefix : "/");
      } catch (error) {
        const failure = failureOf(error);
        if (failure.code === "internal" && !(error instanceof SandboxError) && !request.signal.aborted) {
          options.onError?.(error);
        }
        return failureAnswer(failure);
      }
    },
    close: async () => {
      for (const { watchers } of begun.values()) watchers.close();
      begun.clear();
    },
  });
  return e2bPlaces(options.address).map(door);
}

/** As E2B gives one that goes on by itself, whatever it was made with. */
const RESUMED_MS = 300_000;

async function running(
  sandboxId: string,
  { transport }: DoorCall,
  { signal, mayResume }: { readonly signal: AbortSignal; readonly mayResume: boolean },
): Promise<Sandbox> {
  try {
    const engine = engineOver(transport);
    const sandbox = await Sandbox.connect(sandboxId, { engine, signal });
    if (isRunning(sandbox.info)) return sandbox;
    if (mayResume && sandbox.status === "paused" && sandbox.info.labels[AUTO_RESUME] !== undefined) {
      await sandbox.client.resumeSandbox(sandboxId, { signal });
      await sandbox.client.updateExpiry(sandboxId, RESUMED_MS, { signal });
      return await Sandbox.connect(sandboxId, { engine, signal });
    }
  } catch (error) {
    const isUnknown = error instanceof SandboxError && ["SANDBOX_NOT_FOUND", "INVALID_ARGUMENT"].includes(error.code);
    if (!isUnknown) throw error;
  }
  throw new SandboxGone(sandboxId);
}
