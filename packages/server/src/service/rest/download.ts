import type { DescField } from "@bufbuild/protobuf";
import { type Call, type OpenStream, openStream } from "./call.ts";
import { requestMessage } from "./request-message.ts";
import { streamResponse } from "./responses.ts";

type Download = Extract<Call["route"]["exchange"], { kind: "download" }>;

/**
 * The bytes of a server stream as the body, no faster than the client reads. What goes wrong before the first byte is
 * thrown; later there is no way to say it but to cut the connection.
 */
export async function answerDownload(call: Call, exchange: Download): Promise<Response> {
  const input = await requestMessage(call);
  const messages = openStream(call, exchange.method, input);
  let ahead: Uint8Array | undefined = await nextBytes(messages, exchange.data);
  const response = streamResponse(exchange.mediaType, {
    async pull(controller) {
      try {
        const bytes = ahead ?? (await nextBytes(messages, exchange.data));
        ahead = undefined;
        if (bytes === undefined) {
          controller.close();
        } else {
          controller.enqueue(bytes);
        }
      } catch (error) {
        call.reportDefect(error);
        controller.error(error);
      }
    },
    cancel: () => messages.end(),
  });
  response.headers.set("Content-Disposition", "attachment");
  return response;
}

/** undefined at the end. */
async function nextBytes(messages: OpenStream, data: DescField): Promise<Uint8Array | undefined> {
  for (;;) {
    const { done, value } = await messages.next();
    if (done === true) {
      return undefined;
    }
    const bytes = (value as unknown as Record<string, Uint8Array>)[data.localName];
    if (bytes !== undefined && bytes.byteLength > 0) {
      return bytes;
    }
  }
}
