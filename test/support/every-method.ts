import { type GrpcClient, type Message, methodsOf, type Outcome, type ServiceName } from "./grpc-client.ts";
import { definition } from "./proto.ts";
import type { RestAnswer, RestClient } from "./rest-client.ts";

// Every method of the contract with a call that makes sense, made from the descriptors: a method that is added tomorrow is
// in every test that goes over this list.

interface Field {
  readonly name: string;
  readonly type: string;
  readonly typeName: string;
  readonly label: string;
}

interface MessageType {
  readonly field: readonly Field[];
  readonly nestedType: readonly (MessageType & { readonly name: string })[];
}

interface MethodOptions {
  readonly idempotency_level: string;
  readonly "(google.api.http)"?: Readonly<Record<string, string>>;
}

/** How REST calls a method: "GET", "/v1/codebases/{codebase_id}", and the field that the body is ("*": all others). */
interface HttpRule {
  readonly verb: string;
  readonly path: string;
  readonly body: string;
}

export interface ContractMethod {
  readonly service: ServiceName;
  readonly name: string;
  /** "/sandbox.v1.SandboxService/Exec" */
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  /** It may change something: the descriptor does not say that it has no side effects. */
  readonly changes: boolean;
  /** The fields that name something of an owner, or the owner. */
  readonly idFields: readonly string[];
  readonly http: HttpRule | undefined;
  /** The field that the first message of a stream has. */
  readonly opening: string | undefined;
  readonly fields: readonly string[];
}

const SERVICES: readonly ServiceName[] = ["CodebaseService", "SandboxService", "EventService", "SystemService"];
const ID_FIELDS = ["codebase_id", "sandbox_id", "session_id", "key_id", "owner_id"];

/** What a call needs besides ids, wherever a request has such a field. */
const SAMPLES: Message = {
  name: "sample",
  command: "true",
  path: "a.txt",
  file_path: "a.txt",
  from_path: "a.txt",
  to_path: "b.txt",
  // Of the process that makeBelongings starts.
  number: 1,
  signal: "SIGTERM",
  size: { columns: 80, rows: 24 },
  port: 3000,
  context_id: `ctx_${"0".repeat(32)}`,
};

/** Where the field of that name means something else. */
const EXCEPTIONS: Readonly<Record<string, Message>> = {
  ListFiles: { path: "" },
  ListDirectory: { path: "" },
  DownloadArchive: { path: "" },
  MakeDirectory: { path: "made" },
  GetVersion: { version: "1" },
  Rollback: { version: "1" },
  WaitForPort: { timeout: { seconds: 0, nanos: 1_000_000 } },
};

export const CONTRACT: readonly ContractMethod[] = SERVICES.flatMap((service) =>
  Object.entries(methodsOf(service)).map(([name, rpc]) => {
    const { options, requestType } = rpc as unknown as {
      options: MethodOptions;
      requestType: { type: MessageType };
    };
    const type = requestType.type;
    const opening = rpc.requestStream ? type.field[0]! : undefined;
    const fields = (opening === undefined ? type : openingType(type, opening)).field.map((field) => field.name);
    return {
      service,
      name,
      path: rpc.path,
      requestStream: rpc.requestStream,
      responseStream: rpc.responseStream,
      changes: options.idempotency_level !== "NO_SIDE_EFFECTS",
      idFields: ID_FIELDS.filter((id) => fields.includes(id)),
      http: httpOf(options["(google.api.http)"]),
      opening: opening?.name,
      fields,
    };
  }),
);

/** A message of the stream's own, or one of the package. */
function openingType({ nestedType: nested }: MessageType, { typeName }: Field): MessageType {
  const own = nested.find(({ name }) => typeName === name || typeName.endsWith(`.${name}`));
  return own ?? (definition[`sandbox.v1.${typeName}`]!.type as unknown as MessageType);
}

function httpOf(rule: Readonly<Record<string, string>> | undefined): HttpRule | undefined {
  if (rule === undefined) return undefined;
  const [verb, path] = Object.entries(rule).find(([name]) => /^(get|put|post|delete|patch)$/.test(name))!;
  return { verb: verb.toUpperCase(), path, body: rule.body ?? "" };
}

/** The fields of a call: the samples, and what is given. */
function valuesOf(method: ContractMethod, given: Message): Message {
  const samples = { ...SAMPLES, ...EXCEPTIONS[method.name], ...given };
  return Object.fromEntries(Object.entries(samples).filter(([name]) => method.fields.includes(name)));
}

/** The messages that make a call with these ids. */
export function requestsOf(method: ContractMethod, given: Message): Message[] {
  const values = valuesOf(method, given);
  if (method.opening === undefined) return [values];
  const content =
    method.fields.includes("file_path") || method.fields.includes("mode") ? [{ data: Buffer.from("x") }] : [];
  return [{ [method.opening]: values }, ...content];
}

export function callByGrpc(
  client: GrpcClient,
  method: ContractMethod,
  given: Message,
  options: { readonly key?: string; readonly deadlineMs?: number } = {},
): Promise<Outcome> {
  return client.outcome(method.service, method.name, requestsOf(method, given), options);
}

/** The same call as its rule has it; undefined for a method that REST does not have. */
export function restRequestOf(
  method: ContractMethod,
  given: Message,
): { readonly verb: string; readonly target: string; readonly body: unknown } | undefined {
  const { http } = method;
  if (http === undefined) return undefined;
  const values = valuesOf(method, given);
  const inPath = new Set<string>();
  const path = http.path.replace(/\{([a-z_]+)(?:=\*\*)?\}/g, (_, name: string) => {
    inPath.add(name);
    return encodeURIComponent(String(values[name] ?? ""));
  });
  const asJson = (name: string, value: unknown): unknown => (name === "timeout" ? "0.001s" : value);
  const rest = Object.entries(values)
    .filter(([name]) => !inPath.has(name))
    .map(([name, value]) => [name, asJson(name, value)] as const);
  if (http.body === "*") {
    // A batch is a stream of lines whose first opens it.
    const message =
      method.opening === undefined ? Object.fromEntries(rest) : { [method.opening]: Object.fromEntries(rest) };
    return { verb: http.verb, target: path, body: message };
  }
  const query = new URLSearchParams(Object.fromEntries(rest.map(([name, value]) => [name, String(value)]))).toString();
  const target = query === "" ? path : `${path}?${query}`;
  return { verb: http.verb, target, body: http.body === "" ? undefined : "x" };
}

export async function callByRest(
  client: RestClient,
  method: ContractMethod,
  given: Message,
  options: { readonly key?: string } = {},
): Promise<RestAnswer | undefined> {
  const request = restRequestOf(method, given);
  return request && (await client.request(request.verb, request.target, request.body, options));
}
