import { setImmediate } from "node:timers/promises";
import type { JsonValue } from "@bufbuild/protobuf";

/** On every answer: what gateways to gRPC send, and nothing that a browser could take for a page. */
const COMMON_HEADERS = {
  "Grpc-Metadata-Content-Type": "application/grpc",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
};

export function jsonResponse(
  status: number,
  json: JsonValue | object,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify(json), {
    status,
    headers: { ...COMMON_HEADERS, "Content-Type": "application/json", ...headers },
  });
}

/** Writes one piece of a body when the client has room for it. */
export interface BodySource {
  pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void>;
  cancel(): void;
}

/**
 * A body that is made while it is sent. Its first piece is never there at once: the adapter to Node would hold the headers
 * back to see whether a short body ends, and take an error that it meets there for the end of a whole one.
 */
export function streamResponse(mediaType: string, source: BodySource): Response {
  let begun = false;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!begun) {
          begun = true;
          await setImmediate();
        }
        await source.pull(controller);
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { ...COMMON_HEADERS, "Content-Type": mediaType } });
}

/** The same answer to HEAD. */
export async function withoutBody(response: Response): Promise<Response> {
  const headers = new Headers(response.headers);
  if (headers.get("content-type") === "application/json") {
    headers.set("Content-Length", String((await response.arrayBuffer()).byteLength));
  } else {
    await response.body?.cancel();
  }
  return new Response(null, { status: response.status, headers });
}
