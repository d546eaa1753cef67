import * as grpc from "@grpc/grpc-js";
import { HANG_MS } from "./eventually.ts";
import { definition, type Message, type MethodName, type ServiceName } from "./proto.ts";

// A gRPC client that is not ours, as other people have one: @grpc/grpc-js with the .proto files.

const packages = grpc.loadPackageDefinition(definition) as unknown as {
  sandbox: { v1: Record<string, grpc.ServiceClientConstructor> };
};

export type { Message, ServiceName } from "./proto.ts";

/** What the .proto files say of a service's methods. */
export function methodsOf(service: ServiceName): grpc.ServiceDefinition {
  return packages.sandbox.v1[service]!.service;
}

export interface CallOptions {
  readonly key?: string;
  readonly deadlineMs?: number;
}

/** What a failed call says. */
export interface Failure {
  readonly code: number;
  readonly message: string;
}

/** Everything that came of a call of any kind. */
export interface Outcome extends Failure {
  readonly messages: readonly Message[];
  /** What else the server said with its status: the details of an error, and all its other metadata. */
  readonly trailers: Readonly<Record<string, string>>;
}

type Method = (
  ...args: unknown[]
) => grpc.ClientReadableStream<Message> & grpc.ClientWritableStream<Message> & grpc.ClientUnaryCall;

export class GrpcClient implements Disposable {
  /** Every method that was called. */
  readonly called = new Set<MethodName>();
  readonly #address: string;
  readonly #key: string | undefined;
  readonly #ownConnections: boolean;
  readonly #clients = new Map<ServiceName, grpc.Client>();

  /** `address`: "127.0.0.1:9000". Clients of one process share their connections unless they want their own. */
  constructor(address: string, options: { readonly key?: string; readonly ownConnections?: boolean } = {}) {
    this.#address = address;
    this.#key = options.key;
    this.#ownConnections = options.ownConnections ?? false;
  }

  /** A unary call. */
  call(service: ServiceName, method: string, request: Message = {}, options: CallOptions = {}): Promise<Message> {
    return new Promise((resolve, reject) => {
      this.#method(service, method)(
        request,
        this.#metadata(options),
        deadline(options),
        (error: grpc.ServiceError | null, answer: Message) => (error ? reject(error) : resolve(answer)),
      );
    });
  }

  /** What a call fails with; throws when it does not fail. */
  async failure(
    service: ServiceName,
    method: string,
    request: Message = {},
    options: CallOptions = {},
  ): Promise<Failure> {
    return failureOf(this.call(service, method, request, options));
  }

  /** A server stream, as it is. */
  stream(
    service: ServiceName,
    method: string,
    request: Message = {},
    options: CallOptions = {},
  ): grpc.ClientReadableStream<Message> {
    return this.#method(service, method)(request, this.#metadata(options), deadline(options));
  }

  /** All messages of a server stream; rejects with what it ends with, unless that is OK. */
  async collect(
    service: ServiceName,
    method: string,
    request: Message = {},
    options: CallOptions = {},
  ): Promise<Message[]> {
    const messages: Message[] = [];
    for await (const message of this.stream(service, method, request, options)) messages.push(message as Message);
    return messages;
  }

  /** A client stream of these messages. */
  send(service: ServiceName, method: string, messages: Iterable<Message>, options: CallOptions = {}): Promise<Message> {
    return new Promise((resolve, reject) => {
      const call = this.#method(service, method)(
        this.#metadata(options),
        deadline(options),
        (error: grpc.ServiceError | null, answer: Message) => (error ? reject(error) : resolve(answer)),
      );
      call.on("error", () => {}); // the callback has it
      for (const message of messages) call.write(message);
      call.end();
    });
  }

  /** A stream of requests, as it is; its "status" event has what came of it. */
  sending(service: ServiceName, method: string, options: CallOptions = {}): grpc.ClientWritableStream<Message> {
    return this.#method(service, method)(this.#metadata(options), deadline(options), () => {});
  }

  /** Both directions at once, as it is. */
  duplex(service: ServiceName, method: string, options: CallOptions = {}): grpc.ClientDuplexStream<Message, Message> {
    const call: unknown = this.#method(service, method)(this.#metadata(options), deadline(options));
    return call as grpc.ClientDuplexStream<Message, Message>;
  }

  /** Carries out a call of any kind with these requests, to its end, whatever that is. */
  async outcome(
    service: ServiceName,
    method: string,
    requests: readonly Message[],
    options: CallOptions = {},
  ): Promise<Outcome> {
    const { requestStream, responseStream } = methodsOf(service)[method]!;
    const messages: Message[] = [];
    const call = this.#method(service, method)(
      ...(requestStream ? [] : [requests[0] ?? {}]),
      this.#metadata(options),
      deadline(options),
      ...(responseStream ? [] : [(_error: unknown, answer?: Message) => void (answer && messages.push(answer))]),
    );
    call.on("error", () => {}); // the status has it
    const ended = responseStream ? new Promise((resolve) => call.on("end", resolve).on("close", resolve)) : undefined;
    if (responseStream) call.on("data", (message: Message) => void messages.push(message));
    if (requestStream) {
      for (const request of requests) call.write(request);
      call.end();
    }
    const status = await new Promise<grpc.StatusObject>((resolve) => call.on("status", resolve));
    await ended;
    const trailers = Object.entries(status.metadata.getMap()).map(([name, value]) => [name, String(value)]);
    return { code: status.code, message: status.details, messages, trailers: Object.fromEntries(trailers) };
  }

  /** One file, as the earlier clients send it. */
  upload(codebaseId: string, path: string, content: string | Uint8Array, extra: Message = {}): Promise<Message> {
    const data = Buffer.from(content);
    const pieces = Array.from({ length: Math.ceil(data.length / 65536) }, (_, index) => ({
      data: data.subarray(index * 65536, (index + 1) * 65536),
    }));
    const metadata = { codebase_id: codebaseId, file_path: path, total_size: String(data.length), ...extra };
    return this.send("CodebaseService", "UploadFiles", [{ metadata }, ...pieces]);
  }

  async download(codebaseId: string, path: string, extra: Message = {}): Promise<Buffer> {
    const request = { codebase_id: codebaseId, file_path: path, ...extra };
    const chunks = await this.collect("CodebaseService", "DownloadFile", request);
    return Buffer.concat(chunks.map((chunk) => chunk.data as Buffer));
  }

  client(service: ServiceName): grpc.Client {
    const known = this.#clients.get(service);
    if (known !== undefined) return known;
    const made = new packages.sandbox.v1[service]!(this.#address, grpc.credentials.createInsecure(), {
      "grpc.max_receive_message_length": 64 * 1024 * 1024,
      "grpc.use_local_subchannel_pool": this.#ownConnections ? 1 : 0,
    });
    this.#clients.set(service, made);
    return made;
  }

  [Symbol.dispose](): void {
    for (const client of this.#clients.values()) client.close();
  }

  #method(service: ServiceName, method: string): Method {
    this.called.add(`${service}.${method}`);
    const client = this.client(service) as unknown as Record<string, Method>;
    return client[method]!.bind(client);
  }

  #metadata(options: CallOptions): grpc.Metadata {
    const metadata = new grpc.Metadata();
    const key = options.key ?? this.#key;
    if (key !== undefined) metadata.set("authorization", `Bearer ${key}`);
    return metadata;
  }
}

function deadline(options: CallOptions): grpc.CallOptions {
  return { deadline: Date.now() + (options.deadlineMs ?? HANG_MS) };
}

export async function failureOf(call: Promise<unknown>): Promise<Failure> {
  try {
    await call;
  } catch (error) {
    const { code, details } = error as grpc.ServiceError;
    if (typeof code !== "number") throw error;
    return { code, message: details };
  }
  throw new Error("the call did not fail");
}
