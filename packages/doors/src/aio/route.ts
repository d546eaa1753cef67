import type { Sandbox } from "@agentfense/sdk";
import type { Shape } from "../shape.ts";
import type { CallerState } from "./caller-state.ts";
import type { AioDoorOptions } from "./options.ts";

/** What a handler has to work with. The sandbox speaks for the caller: what he may not do is refused by the server. */
export interface AioCall {
  readonly sandbox: Sandbox;
  /** What this caller has begun in this sandbox. */
  readonly place: CallerState;
  /** Named in the path of the route. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly request: Request;
  readonly options: AioDoorOptions;
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** "v1/file/watch/{watcher_id}/poll" */
  readonly path: string;
  /** Absent where the handler reads the request itself. */
  readonly input?: Shape<unknown> | undefined;
  readonly inputFrom: "body" | "query";
  /** Gives the data of the envelope, or a whole response. */
  run(call: AioCall, input: unknown): Promise<unknown>;
}

/** A call with a JSON body. */
export function post<Input>(
  path: string,
  input: Shape<Input>,
  run: (call: AioCall, input: Input) => Promise<unknown>,
): Route {
  return { method: "POST", path, input, inputFrom: "body", run: (call, given) => run(call, given as Input) };
}

/** A call with what its query says. */
export function get<Input>(
  path: string,
  input: Shape<Input>,
  run: (call: AioCall, input: Input) => Promise<unknown>,
): Route {
  return { method: "GET", path, input, inputFrom: "query", run: (call, given) => run(call, given as Input) };
}

/** A call that takes nothing, or reads the request itself. */
export function bare(method: Route["method"], path: string, run: (call: AioCall) => Promise<unknown>): Route {
  return { method, path, inputFrom: "body", run: (call) => run(call) };
}

/** The route of a path, with what the path names; "method" when there is one, but for another method. */
export function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): { readonly route: Route; readonly parameters: Record<string, string> } | "method" | undefined {
  let other = false;
  for (const route of routes) {
    const parameters = match(route.path.split("/"), path.split("/"));
    if (parameters === undefined) continue;
    if (route.method === method) return { route, parameters };
    other = true;
  }
  return other ? "method" : undefined;
}

function match(pattern: readonly string[], names: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== names.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [at, part] of pattern.entries()) {
    const name = names[at]!;
    if (part.startsWith("{")) parameters[part.slice(1, -1)] = name;
    else if (part !== name) return undefined;
  }
  return parameters;
}
