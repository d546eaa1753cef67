import { setTimeout as sleep } from "node:timers/promises";
import { STATUS_NUMBERS } from "@agentfense/protocol";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@agentfense/protocol/health";
import { ServerReflection, type ServerReflectionRequest } from "@agentfense/protocol/reflection";
import { ServerReflection as ServerReflectionAlpha } from "@agentfense/protocol/reflection-v1alpha";
import { createRegistry, type DescFile, type DescService, type Registry, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";

/** Whether the server takes work, and the word that it stops. */
export class Serving {
  readonly #ready: () => boolean;
  readonly #stopping = new AbortController();
  /** Aborts when the server begins to stop. */
  readonly stopping: AbortSignal = this.#stopping.signal;

  constructor(ready: () => boolean) {
    this.#ready = ready;
  }

  get isReady(): boolean {
    return !this.isDraining && this.#ready();
  }

  get isDraining(): boolean {
    return this.stopping.aborted;
  }

  drain(): void {
    this.#stopping.abort();
  }
}

/** How often a watch looks whether something changed. */
const LOOK_MS = 500;

/** gRPC's health checks: of the server as a whole (""), and of each service by its full name. */
export function registerHealth(router: ConnectRouter, serving: Serving, services: ReadonlySet<string>): void {
  const statusOf = (service: string): ServingStatus => {
    if (service !== "" && !services.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    return serving.isReady ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  };

  router.service(Health, {
    check({ service }) {
      const status = statusOf(service);
      if (status === ServingStatus.SERVICE_UNKNOWN) throw new ConnectError("unknown service", Code.NotFound);
      return { status };
    },

    async *watch({ service }, { signal }) {
      let told: ServingStatus | undefined;
      while (!signal.aborted) {
        const status = statusOf(service);
        if (status !== told) yield { status };
        told = status;
        if (serving.isDraining) return;
        await sleep(LOOK_MS, undefined, { signal: AbortSignal.any([signal, serving.stopping]) }).catch(() => {});
      }
    },
  });
}

/** What can be asked about: services, and the files that define them or are imported there. */
interface Described {
  readonly services: readonly string[];
  readonly files: ReadonlySet<DescFile>;
  readonly types: Registry;
}

/** gRPC's reflection, under its present and its earlier name, which most tools still try. */
export function registerReflection(router: ConnectRouter, contract: readonly DescService[]): void {
  const services = [...contract, Health, ServerReflection, ServerReflectionAlpha];
  const files = withDependencies(services.map((service) => service.file));
  const names = services.map((service) => service.typeName).toSorted();
  const described: Described = { services: names, files, types: createRegistry(...files) };
  const answers = async function* (requests: AsyncIterable<ServerReflectionRequest>) {
    for await (const request of requests) {
      const messageResponse = answer(request.messageRequest, described);
      yield { validHost: request.host, originalRequest: request, messageResponse };
    }
  };
  // The same messages with the same fields, but types of another package.
  router.service(ServerReflection, { serverReflectionInfo: answers });
  router.service(ServerReflectionAlpha, { serverReflectionInfo: answers as never });
}

function answer(question: ServerReflectionRequest["messageRequest"], { services, files, types }: Described) {
  switch (question.case) {
    case "fileByFilename":
      return filesOr(
        [...files].find((file) => `${file.name}.proto` === question.value),
        "file",
      );
    case "fileContainingSymbol":
      return filesOr(fileWith(question.value, types), "symbol");
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      const extended = types.getMessage(containingType);
      return filesOr(extended && types.getExtensionFor(extended, extensionNumber)?.file, "extension");
    }
    case "allExtensionNumbersOfType": {
      const extended = types.getMessage(question.value);
      if (extended === undefined) return notFound("type");
      const own = [...types].filter((type) => type.kind === "extension" && type.extendee === extended);
      const extensionNumber = own
        .map((type) => (type.kind === "extension" ? type.number : 0))
        .toSorted((a, b) => a - b);
      return {
        case: "allExtensionNumbersResponse" as const,
        value: { baseTypeName: question.value, extensionNumber },
      };
    }
    case "listServices":
      return {
        case: "listServicesResponse" as const,
        value: { service: services.map((name) => ({ name })) },
      };
    case undefined:
      return failure(STATUS_NUMBERS.INVALID_ARGUMENT, "the request asks nothing");
  }
}

/** Finds the file of a type, or of a field, a oneof or a method, by its full name. */
function fileWith(symbol: string, types: Registry): DescFile | undefined {
  const dot = symbol.lastIndexOf(".");
  const parent = types.get(symbol.slice(0, Math.max(dot, 0)));
  const name = symbol.slice(dot + 1);
  const members =
    parent?.kind === "message"
      ? [...parent.fields, ...parent.oneofs]
      : parent?.kind === "service"
        ? parent.methods
        : [];
  return types.get(symbol)?.file ?? (members.some((member) => member.name === name) ? parent?.file : undefined);
}

/** The file itself first, then all it imports, directly or not. */
function filesOr(file: DescFile | undefined, what: string) {
  if (file === undefined) return notFound(what);
  const fileDescriptorProto = [...withDependencies([file])].map((each) =>
    toBinary(FileDescriptorProtoSchema, each.proto),
  );
  return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto } };
}

function withDependencies(files: readonly DescFile[]): ReadonlySet<DescFile> {
  const all = new Set(files);
  // A set that grows is walked to its end.
  for (const each of all) for (const dependency of each.dependencies) all.add(dependency);
  return all;
}

function notFound(what: string) {
  return failure(STATUS_NUMBERS.NOT_FOUND, `no such ${what}`);
}

function failure(errorCode: number, errorMessage: string) {
  return { case: "errorResponse" as const, value: { errorCode, errorMessage } };
}
