import { setImmediate } from "node:timers/promises";
import { type DescField, type DescMessage, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { hasOwnJsonForm } from "./fields.ts";
import { emptyRecord, isRecord } from "./request-json.ts";

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

/**
 * A body that is made while it is sent, no faster than the client reads. Its first piece is never there at once: the adapter to Node
 * would hold the headers back to see whether a short body ends, and take an error that it meets there for the end of a whole one.
 */
export function streamResponse(
  mediaType: string,
  pieces: AsyncIterator<Uint8Array>,
  options: { readonly cancel: () => void; readonly headers?: Readonly<Record<string, string>> },
): Response {
  let begun = false;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!begun) await setImmediate();
        begun = true;
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: options.cancel,
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { ...COMMON_HEADERS, "Content-Type": mediaType, ...options.headers } });
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

/**
 * A message as clients of the earlier server know it: every field is there. Unset messages and unset optional scalars are
 * null; only the members of a oneof that are not its case are left out.
 */
export function messageJson(desc: DescMessage, message: Message): JsonValue {
  return complete(desc, toJson(desc, message, { alwaysEmitImplicit: true }));
}

/** `toJson` writes implicit fields; this adds the explicit ones, at every depth, in the order of declaration. */
function complete(desc: DescMessage, json: JsonValue): JsonValue {
  if (hasOwnJsonForm(desc) || !isRecord(json)) {
    return json;
  }
  const whole = emptyRecord();
  for (const field of desc.fields) {
    const value = json[field.jsonName];
    if (value === undefined) {
      if (field.oneof === undefined) {
        whole[field.jsonName] = null;
      }
    } else {
      whole[field.jsonName] =
        field.message === undefined ? value : completeMessages(field.message, field.fieldKind, value);
    }
  }
  return whole;
}

function completeMessages(desc: DescMessage, kind: DescField["fieldKind"], value: JsonValue): JsonValue {
  if (kind === "list" && Array.isArray(value)) return value.map((item) => complete(desc, item));
  if (kind !== "map" || !isRecord(value)) return complete(desc, value);
  const entries = emptyRecord();
  for (const [key, item] of Object.entries(value)) entries[key] = complete(desc, item);
  return entries;
}
