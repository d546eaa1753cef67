import { STATUS_NUMBERS } from "@agentfense/protocol";
import { Health } from "@agentfense/protocol/health";
import { ServerReflection, type ServerReflectionRequest } from "@agentfense/protocol/reflection";
import { ServerReflection as ServerReflectionAlpha } from "@agentfense/protocol/reflection-v1alpha";
import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { DescriptorIndex } from "./descriptor-index.ts";

/** gRPC's reflection, under its present and its earlier name, which most tools still try. */
export function registerReflection(router: ConnectRouter, contract: readonly DescService[]): void {
  const index = new DescriptorIndex([...contract, Health, ServerReflection, ServerReflectionAlpha]);
  router.service(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answer(request.messageRequest, index),
        };
      }
    },
  });
  // The same messages with the same fields, but types of another package.
  router.service(ServerReflectionAlpha, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answer(request.messageRequest, index),
        };
      }
    },
  });
}

type Question = ServerReflectionRequest["messageRequest"] | { readonly case: undefined; readonly value?: undefined };

function answer(question: QuestionShape, index: DescriptorIndex) {
  switch (question.case) {
    case "fileByFilename":
      return filesOr(index.fileNamed(question.value), "file");
    case "fileContainingSymbol":
      return filesOr(index.fileWithSymbol(question.value), "symbol");
    case "fileContainingExtension":
      return filesOr(
        index.fileWithExtension(question.value.containingType, question.value.extensionNumber),
        "extension",
      );
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionsOf(question.value);
      if (extensionNumber === undefined) return notFound("type");
      return {
        case: "allExtensionNumbersResponse" as const,
        value: { baseTypeName: question.value, extensionNumber: [...extensionNumber] },
      };
    }
    case "listServices":
      return {
        case: "listServicesResponse" as const,
        value: { service: index.services.map((name) => ({ name })) },
      };
    case undefined:
      return failure(STATUS_NUMBERS.INVALID_ARGUMENT, "the request asks nothing");
  }
}

/** What both versions of a request have in common. */
type QuestionShape =
  | Exclude<Question, { case: "fileContainingExtension" } | { case: undefined }>
  | {
      readonly case: "fileContainingExtension";
      readonly value: { readonly containingType: string; readonly extensionNumber: number };
    }
  | { readonly case: undefined };

function filesOr(files: readonly DescFile[] | undefined, what: string) {
  if (files === undefined) return notFound(what);
  return {
    case: "fileDescriptorResponse" as const,
    value: { fileDescriptorProto: files.map((file) => toBinary(FileDescriptorProtoSchema, file.proto)) },
  };
}

function notFound(what: string) {
  return failure(STATUS_NUMBERS.NOT_FOUND, `no such ${what}`);
}

function failure(errorCode: number, errorMessage: string) {
  return { case: "errorResponse" as const, value: { errorCode, errorMessage } };
}
