import { join } from "node:path";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

// The contract as its .proto files say it, read by tools that are not ours.

const PROTO = join(import.meta.dirname, "../../proto");

export const definition = loadSync(
  [
    ...["codebase", "sandbox", "event", "system"].map((name) => join(PROTO, `sandbox/v1/${name}.proto`)),
    ...["error_details", "status"].map((name) => join(PROTO, `google/rpc/${name}.proto`)),
  ],
  { includeDirs: [PROTO], keepCase: true, longs: String, enums: String, defaults: true, oneofs: true },
);

export type Message = Record<string, unknown>;

const SERVICES = ["CodebaseService", "SandboxService", "EventService", "SystemService"] as const;
export type ServiceName = (typeof SERVICES)[number];
/** "CodebaseService.GetCodebase" */
export type MethodName = `${ServiceName}.${string}`;

/** What REST calls a method by: "GET" and "/v1/codebases/{codebase_id}/files/{file_path=**}". */
export interface Route {
  readonly verb: string;
  readonly template: string;
  /** The field that the body is, "*" for all that the path does not have, "" for none. */
  readonly body: string;
}

export interface ContractMethod {
  readonly name: MethodName;
  readonly route: Route | undefined;
}

/** The methods of a service as its descriptor has them. */
export function methodsOf(service: ServiceName): ServiceDefinition {
  return definition[`sandbox.v1.${service}`] as unknown as ServiceDefinition;
}

export const METHODS: readonly ContractMethod[] = SERVICES.flatMap((service) =>
  Object.entries(methodsOf(service)).map(([name, method]) => ({
    name: `${service}.${name}` as const,
    route: routeOf((method as unknown as { options: { "(google.api.http)"?: Record<string, string> } }).options),
  })),
);

export function routeOf({
  "(google.api.http)": rule,
}: {
  "(google.api.http)"?: Record<string, string>;
}): Route | undefined {
  if (rule === undefined) return undefined;
  const [verb, template] = Object.entries(rule).find(([name]) => /^(?:get|put|post|delete|patch)$/.test(name))!;
  return { verb: verb.toUpperCase(), template, body: rule.body ?? "" };
}

/** Whether a request ("GET", "/v1/codebases/cb_1?page_size=3") is one of this route. */
export function isOnRoute({ verb, template }: Route, requestVerb: string, target: string): boolean {
  const pattern = template
    .replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/\{[a-z_]+=\\\*\\\*\}/g, ".+")
    .replaceAll(/\{[a-z_]+\}/g, "[^/?]+");
  return verb === requestVerb && new RegExp(`^${pattern}(?:\\?.*)?$`).test(target);
}

/** A message of the contract from its bytes: "google.rpc.Status". */
export function decodeMessage(typeName: string, bytes: Uint8Array): Message {
  const type = definition[typeName] as unknown as { deserialize(bytes: Buffer): Message } | undefined;
  if (type === undefined) throw new Error(`the contract has no message ${typeName}`);
  return type.deserialize(Buffer.from(bytes));
}
