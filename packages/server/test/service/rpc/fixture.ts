import { CodebaseService } from "@agentfense/protocol/codebase";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type Interceptor, type Transport } from "@connectrpc/connect";
import type { Caller } from "../../../src/runtime/caller.ts";
import type { LogLine } from "../../../src/runtime/log.ts";
import { callerKey } from "../../../src/service/rpc/handlers.ts";
import { registerServices, type ServerFacts, type ServiceRuntime } from "../../../src/service/rpc/register.ts";

export const ALICE: Caller = { ownerId: "alice", role: "user", keyId: "key_alice" };
export const ADMIN: Caller = { ownerId: undefined, role: "admin" };

/** What of the runtime a test needs; a call of anything else fails the test. */
export interface RuntimeParts {
  readonly codebases?: Partial<ServiceRuntime["codebases"]>;
  readonly sandboxes?: Partial<ServiceRuntime["sandboxes"]>;
  readonly secrets?: Partial<ServiceRuntime["secrets"]>;
  readonly audit?: Partial<ServiceRuntime["audit"]>;
  readonly keys?: Partial<ServiceRuntime["keys"]>;
  readonly links?: Partial<ServiceRuntime["links"]>;
  readonly info?: Partial<ServerFacts>;
}

export interface Bench {
  readonly transport: Transport;
  readonly log: LogLine[];
}

/** The services over a fake runtime, as somebody meets them. */
export function bench(
  parts: RuntimeParts,
  options: { readonly caller?: Caller | undefined; readonly maxMessageBytes?: number } = {},
): Bench {
  const caller = "caller" in options ? options.caller : ALICE;
  const log: LogLine[] = [];
  const transport = createRouterTransport((router) => registerServices(router, runtimeOf(parts), optionsOf()), {
    router: { interceptors: [asCaller(caller)] },
  });
  return { transport, log };

  function optionsOf() {
    const { maxMessageBytes } = options;
    return {
      log: (line: LogLine) => void log.push(line),
      ...(maxMessageBytes === undefined ? {} : { maxMessageBytes }),
    };
  }
}

export function asCaller(caller: Caller | undefined): Interceptor {
  return (next) => (request) => {
    request.contextValues.set(callerKey, caller);
    return next(request);
  };
}

export function runtimeOf(parts: RuntimeParts): ServiceRuntime {
  return {
    codebases: only("codebases", parts.codebases),
    sandboxes: only("sandboxes", parts.sandboxes),
    secrets: only("secrets", parts.secrets),
    // Every call that changes something waits for the log.
    audit: only("audit", { flush: () => Promise.resolve(), ...parts.audit }),
    keys: only("keys", parts.keys),
    links: only("links", parts.links),
    info: { version: "1.2.3", runtimes: ["bwrap"], degradations: () => [], keysRequired: true, ...parts.info },
  };
}

function only<Part extends object>(name: string, part: Partial<Part> = {}): Part {
  return new Proxy(part as Part, {
    get: (target, member) => {
      const unexpected = () => {
        throw new Error(`nobody expected ${name}.${String(member)}`);
      };
      return Reflect.get(target, member) ?? unexpected;
    },
  });
}

export const SERVICES = [CodebaseService, SandboxService, EventService, SystemService] as const;

/** "ExecStream" and the like; names are unique over all services. */
export const METHODS: ReadonlyMap<string, DescMethod> = new Map(
  SERVICES.flatMap((service) => service.methods.map((method) => [method.name, method] as const)),
);

export function methodNamed(name: string): DescMethod {
  const method = METHODS.get(name);
  if (method === undefined) throw new Error(`there is no method ${name}`);
  return method;
}

export type Init = MessageInitShape<DescMessage>;

/** Calls any method with these requests and gives all its answers. */
export async function call(
  transport: Transport,
  name: string,
  requests: readonly object[],
  signal?: AbortSignal,
): Promise<MessageShape<DescMessage>[]> {
  const method = methodNamed(name);
  if (method.methodKind === "unary") {
    const response = await transport.unary(
      method as DescMethodUnary<DescMessage, DescMessage>,
      signal,
      undefined,
      undefined,
      requests[0] as Init,
    );
    return [response.message];
  }
  const response = await transport.stream(
    method as DescMethodStreaming<DescMessage, DescMessage>,
    signal,
    undefined,
    undefined,
    streamOf(requests as Init[]),
  );
  return await Array.fromAsync(response.message);
}

/** The same, as JSON with all fields that have a value. */
export async function callJson(transport: Transport, name: string, requests: readonly object[]): Promise<JsonValue[]> {
  const { output } = methodNamed(name);
  return (await call(transport, name, requests)).map((message) => toJson(output, create(output, message)));
}

export async function* streamOf<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

export interface Refusal {
  readonly code: string;
  readonly message: string;
  /** Of the ErrorInfo. */
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

/** How a call that must fail fails. */
export async function failureOf(work: Promise<unknown>): Promise<ConnectError> {
  try {
    await work;
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error("the call was to fail and did not");
}

export async function refusalOf(work: Promise<unknown>): Promise<Refusal> {
  const error = await failureOf(work);
  const [info] = error.findDetails(ErrorInfoSchema);
  return { code: Code[error.code], message: error.rawMessage, reason: info?.reason, metadata: info?.metadata };
}
