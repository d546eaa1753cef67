import { connect as connectSocket } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { aWhile, HANG_MS } from "../../../../../test/support/eventually.ts";
import type { Caller } from "../../../src/runtime/caller.ts";
import type { Keys } from "../../../src/runtime/keys/api.ts";
import { PortTokens } from "../../../src/runtime/ports/tokens.ts";
import { RuntimeError } from "../../../src/runtime/runtime-error.ts";
import { callerKey } from "../../../src/service/rpc/handlers.ts";
import { type Service, type StartServiceOptions, startService } from "../../../src/service/start-service.ts";

/** Keys in memory. Creating and listing them is somebody else's test. */
export class TestKeys implements Pick<Keys, "authenticate" | "callerOf"> {
  readonly #callers = new Map<string, Caller>();
  asked = 0;

  add(secret: string, caller: Caller): this {
    this.#callers.set(secret, caller);
    return this;
  }

  drop(secret: string): void {
    this.#callers.delete(secret);
  }

  async authenticate(secret: string): Promise<Caller> {
    this.asked += 1;
    const caller = this.#callers.get(secret);
    if (caller === undefined) throw new RuntimeError("UNAUTHENTICATED", "the API key is not valid");
    return caller;
  }

  async callerOf(id: string): Promise<Caller | undefined> {
    return [...this.#callers.values()].find(({ keyId }) => keyId === id);
  }
}

/** What the handlers below were asked to do. */
export class Journal {
  readonly calls: string[] = [];
  readonly ended: string[] = [];
  /** A command that is called "held" runs until this is resolved. */
  readonly held = Promise.withResolvers<void>();
  uploadedBytes = 0;
  producedChunks = 0;
}

const CHUNK = new Uint8Array(64 * 1024).fill(120);

/** Some methods of the contract with the smallest answers that show who called, what arrived and what ended. */
export function registerSample(router: ConnectRouter, journal: Journal): void {
  const admit = (context: HandlerContext): Caller => {
    journal.calls.push(context.method.name);
    const caller = context.values.get(callerKey);
    if (caller === undefined) throw new Error(`${context.method.name} runs for nobody`);
    return caller;
  };
  router.service(SystemService, {
    getServerInfo: (_request, context) => ({ version: "test", ownerId: admit(context).ownerId ?? "" }),
    createKey: (request, context) => {
      admit(context);
      if (request.name === "defect") throw new Error("secret detail of /etc/shadow");
      return { secret: `for ${request.ownerId}` };
    },
  });
  router.service(EventService, {
    async *watchEvents(_request, context) {
      admit(context);
      try {
        yield { type: "first" };
        await aborted(context.signal);
      } finally {
        journal.ended.push("WatchEvents");
      }
    },
  });
  router.service(CodebaseService, {
    async uploadFiles(chunks, context) {
      admit(context);
      for await (const { content } of chunks) {
        if (content.case === "data") journal.uploadedBytes += content.value.byteLength;
      }
      return { size: BigInt(journal.uploadedBytes) };
    },
    async *downloadFile(request, context) {
      admit(context);
      try {
        for (let count = Number(request.version); count > 0; count -= 1) {
          journal.producedChunks += 1;
          yield { data: CHUNK };
        }
      } finally {
        journal.ended.push("DownloadFile");
      }
    },
  });
  router.service(SandboxService, {
    async exec(request, context) {
      admit(context);
      const work = request.command === "held" ? journal.held.promise : aWhile(Number(request.command));
      await Promise.race([work, aborted(context.signal)]);
      journal.ended.push(`Exec ${context.signal.aborted ? "aborted" : "done"}`);
      return { stdout: "done" };
    },
    async *openTerminal(inputs, context) {
      admit(context);
      try {
        for await (const _ of inputs) yield { data: new Uint8Array([1]) };
      } finally {
        journal.ended.push("OpenTerminal");
      }
    },
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

export interface TestService extends AsyncDisposable {
  readonly service: Service;
  readonly keys: TestKeys;
  readonly journal: Journal;
  readonly log: string[];
  /** "127.0.0.1:41234" */
  readonly grpc: string;
  readonly http: string;
}

export const USER = "af_user_secret";
export const READER = "af_reader_secret";
export const ADMIN = "af_admin_secret";

const NO_SANDBOXES = { connect: () => Promise.reject(new RuntimeError("SANDBOX_NOT_FOUND", "sandbox not found")) };

export async function openTestService({
  sandboxes = NO_SANDBOXES,
  ...options
}: Partial<StartServiceOptions> &
  Partial<Pick<StartServiceOptions["runtime"], "sandboxes">> = {}): Promise<TestService> {
  const keys = new TestKeys()
    .add(USER, { ownerId: "alice", role: "user", keyId: "k1" })
    .add(READER, { ownerId: "alice", role: "read-only", keyId: "k2" })
    .add(ADMIN, { ownerId: undefined, role: "admin", keyId: "k3" });
  const journal = new Journal();
  const log: string[] = [];
  const service = await startService({
    runtime: { keys: keys as unknown as Keys, sandboxes, info: { version: "1.2.3" } },
    tokens: new PortTokens(),
    register: (router) => registerSample(router, journal),
    grpc: { address: "127.0.0.1:0" },
    http: { address: "127.0.0.1:0" },
    keys: "off",
    allowOpen: false,
    log: (line) => log.push(JSON.stringify(line)),
    ...options,
  });
  return {
    service,
    keys,
    journal,
    log,
    grpc: service.grpcAddress,
    http: service.httpAddress ?? "",
    [Symbol.asyncDispose]: () => service.close(),
  };
}

const PROTO = join(dirname(fileURLToPath(import.meta.url)), "../../../../../proto");

/** Clients made from the `.proto` files by a library that is not ours. */
export function grpcPackage(...files: string[]): grpc.GrpcObject {
  const options = { includeDirs: [PROTO], keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };
  return grpc.loadPackageDefinition(loadSync(files, options));
}

type UnaryCall = (
  request: object,
  metadata: grpc.Metadata,
  options: grpc.CallOptions,
  callback: (error: grpc.ServiceError | null, response: Record<string, unknown>) => void,
) => grpc.ClientUnaryCall;

export interface GrpcAnswer {
  readonly code: string;
  readonly message: string;
  readonly response: Record<string, unknown> | undefined;
}

/** A client of one service of `sandbox.v1`, by its full name. */
export function grpcClient(
  file: string,
  service: string,
  address: string,
  credentials = grpc.credentials.createInsecure(),
  options: grpc.ClientOptions = {},
): grpc.Client & Record<string, unknown> & Disposable {
  const makeClient = service
    .split(".")
    .reduce<unknown>(
      (node, name) => (node as Record<string, unknown>)[name],
      grpcPackage(file),
    ) as grpc.ServiceClientConstructor;
  const client = new makeClient(address, credentials, options);
  return Object.assign(client, { [Symbol.dispose]: () => client.close() }) as unknown as ReturnType<typeof grpcClient>;
}

export async function unary(
  client: grpc.Client & Record<string, unknown>,
  method: string,
  request: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<GrpcAnswer> {
  return await new Promise((resolve) => {
    (client[method] as UnaryCall).call(client, request, metadata(headers), {}, (error, response) => {
      const code = grpc.status[error?.code ?? grpc.status.OK];
      resolve({ code, message: error?.details ?? "", response: error === null ? response : undefined });
    });
  });
}

export function metadata(headers: Readonly<Record<string, string>>): grpc.Metadata {
  const all = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) all.set(name, value);
  return all;
}

export function bearer(secret: string): Record<string, string> {
  return { authorization: `Bearer ${secret}` };
}

/** Sends bytes as they are and gives all that comes back until the server closes, or for `waitMs` when that is not expected. */
export async function rawHttp(address: string, bytes: string, waitMs = HANG_MS): Promise<string> {
  const [, host = "", port = ""] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
  const socket = connectSocket({ host, port: Number(port) });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(bytes);
  await Promise.race([closed, aWhile(waitMs)]);
  socket.destroy();
  return Buffer.concat(chunks).toString("latin1");
}
