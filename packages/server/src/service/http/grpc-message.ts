import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

const GRPC_MESSAGE = "grpc-message";

/**
 * The answer with the text of its status encoded as gRPC has it: what is not printable ASCII, and "%". The library encodes all
 * that a URL would, and clients that decode with decodeURI then show "file not found%3A a.txt".
 */
export function withPlainMessage(response: UniversalServerResponse): UniversalServerResponse {
  const { trailer } = response;
  if (trailer === undefined) return response;
  return {
    ...response,
    // A stream's status is known only at its end, which is when this is asked for.
    get trailer() {
      const encoded = trailer.get(GRPC_MESSAGE);
      if (encoded === null) return trailer;
      const plain = new Headers(trailer);
      plain.set(GRPC_MESSAGE, encodeMessage(decodeURIComponent(encoded)));
      return plain;
    },
  };
}

function encodeMessage(text: string): string {
  // Spaces at the ends would not survive a header.
  return text.replace(/[^ -~]+|%|^ | $/gu, encodeURIComponent);
}
