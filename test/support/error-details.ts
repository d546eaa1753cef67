import type { Metadata } from "@grpc/grpc-js";
import { decodeMessage, type Message } from "./proto.ts";

/** The details of a failed gRPC call (`grpc-status-details-bin`), each with its type's name as `@type`. */
export function errorDetails(error: { readonly metadata: Metadata }): Message[] {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (bytes === undefined) return [];
  const { details } = decodeMessage("google.rpc.Status", Buffer.from(bytes)) as {
    details: { readonly type_url: string; readonly value: Buffer }[];
  };
  return details.map(({ type_url, value }) => {
    const typeName = type_url.slice(type_url.lastIndexOf("/") + 1);
    return { "@type": typeName, ...decodeMessage(typeName, value) };
  });
}
