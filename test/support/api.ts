import { afterAll, beforeAll, expect, test } from "vitest";
import { CONTRACT } from "./every-method.ts";
import { GrpcClient } from "./grpc-client.ts";
import type { Message, MethodName, ServiceName } from "./proto.ts";
import { RestClient } from "./rest-client.ts";
import { type ServerOptions, TestServer } from "./server.ts";

/** Every status of gRPC with its number, and what REST answers with for it. */
export const STATUSES = {
  CANCELLED: [1, 499],
  UNKNOWN: [2, 500],
  INVALID_ARGUMENT: [3, 400],
  DEADLINE_EXCEEDED: [4, 504],
  NOT_FOUND: [5, 404],
  ALREADY_EXISTS: [6, 409],
  PERMISSION_DENIED: [7, 403],
  RESOURCE_EXHAUSTED: [8, 429],
  FAILED_PRECONDITION: [9, 400],
  ABORTED: [10, 409],
  OUT_OF_RANGE: [11, 400],
  UNIMPLEMENTED: [12, 501],
  INTERNAL: [13, 500],
  UNAVAILABLE: [14, 503],
  DATA_LOSS: [15, 500],
  UNAUTHENTICATED: [16, 401],
} as const satisfies Readonly<Record<string, readonly [grpc: number, http: number]>>;

export type Status = keyof typeof STATUSES;

/** Ids of the right shape that nothing has. */
export const UNKNOWN = {
  codebase: `cb_${"0".repeat(32)}`,
  sandbox: `sb_${"0".repeat(32)}`,
  session: `sess_${"0".repeat(32)}`,
} as const;

/** A call that is refused, in both forms. */
export interface Refusal {
  readonly method: MethodName;
  /** Several: a stream of requests. */
  readonly request?: Message | readonly Message[];
  /** "GET /v1/codebases/cb_1"; absent when REST has no form for it. */
  readonly rest?: string;
  /** Of REST; the request unless given. */
  readonly body?: unknown;
  readonly status: Status;
  readonly message: string | RegExp;
}

/** A server of the test file's own and clients of both kinds for it. */
export interface Api {
  readonly server: TestServer;
  readonly grpc: GrpcClient;
  readonly rest: RestClient;
  /** A unary gRPC call: "CodebaseService.GetCodebase". */
  call(method: MethodName, request?: Message): Promise<Message>;
  /** A new codebase with these files; its id. */
  codebase(files?: Readonly<Record<string, string>>, ownerId?: string): Promise<string>;
  /** A new sandbox that runs, everything writable unless the request says otherwise; its id. */
  sandbox(codebaseId: string, request?: Message): Promise<string>;
  exec(sandboxId: string, command: string): Promise<Message>;
  /** The call fails alike over gRPC and over REST. */
  refused(refusal: Refusal): Promise<void>;
}

/** Starts a server before the tests of this file. */
export function serveApi(options: ServerOptions = {}): Api {
  let server: TestServer;
  let grpc: GrpcClient;
  let rest: RestClient;
  beforeAll(async () => {
    server = await TestServer.start(options);
    grpc = new GrpcClient(server.grpc);
    rest = new RestClient(server.http);
  });
  afterAll(async () => {
    grpc?.[Symbol.dispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const call = (method: MethodName, request: Message = {}): Promise<Message> => {
    const [service, name] = method.split(".") as [ServiceName, string];
    return grpc.call(service, name, request);
  };

  return {
    get server() {
      return server;
    },
    get grpc() {
      return grpc;
    },
    get rest() {
      return rest;
    },
    call,

    async codebase(files = {}, ownerId = "tester") {
      const { id } = (await call("CodebaseService.CreateCodebase", { name: "project", owner_id: ownerId })) as {
        id: string;
      };
      for (const [path, content] of Object.entries(files)) await grpc.upload(id, path, content);
      return id;
    },

    async sandbox(codebaseId, request = {}) {
      const permissions = [{ pattern: "**", permission: "PERMISSION_WRITE" }];
      const creation = { codebase_id: codebaseId, permissions, ...request };
      const { id } = (await call("SandboxService.CreateSandbox", creation)) as { id: string };
      await call("SandboxService.StartSandbox", { sandbox_id: id });
      return id;
    },

    exec: (sandboxId, command) => call("SandboxService.Exec", { sandbox_id: sandboxId, command }),

    async refused({ method, request = {}, rest: target, body, status, message }) {
      const text: unknown = typeof message === "string" ? message : expect.stringMatching(message);
      const [code, httpStatus] = STATUSES[status];
      const [service, name] = method.split(".") as [ServiceName, string];
      const requests = Array.isArray(request) ? (request as readonly Message[]) : [request as Message];
      const outcome = await grpc.outcome(service, name, requests);
      expect({ code: outcome.code, message: outcome.message, messages: outcome.messages }).toEqual({
        code,
        message: text,
        messages: [],
      });
      expect(outcome.message).not.toContain(server.directory);
      if (target === undefined) return;
      const [verb = "", path = ""] = target.split(" ");
      const sent = body ?? (verb === "GET" || verb === "DELETE" ? undefined : request);
      const answer = await rest.request(verb, path, sent);
      expect({ status: answer.status, body: answer.json }).toEqual({
        status: httpStatus,
        body: { code, message: text, details: expect.any(Array) },
      });
      expect(answer.text).not.toContain(server.directory);
    },
  };
}

/** Last in a file: its tests called all these methods over gRPC and, where they have a route, over REST. */
export function testsCover(api: Api, methods: readonly MethodName[]): void {
  test("all methods that this file is about were called over gRPC and over REST", () => {
    const uncalled = methods.filter((name) => !api.grpc.called.has(name));
    const unrequested = CONTRACT.filter(({ http }) => http !== undefined && !wasRequested(api.rest, http))
      .map(({ service, name }): MethodName => `${service}.${name}`)
      .filter((name) => methods.includes(name));
    expect({ uncalled, unrequested }).toEqual({ uncalled: [], unrequested: [] });
  });
}

function wasRequested(rest: RestClient, http: { readonly verb: string; readonly path: string }): boolean {
  const pattern = http.path
    .split(/(\{[^}]*\})/)
    .map((part) => (part.startsWith("{") ? (part.includes("**") ? ".*" : "[^/]*") : RegExp.escape(part)))
    .join("");
  const path = new RegExp(`^${pattern}$`);
  return rest.requested.some(({ verb, target }) => verb === http.verb && path.test(target.split("?")[0]!));
}
