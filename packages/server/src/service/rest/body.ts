import { RuntimeError } from "../../runtime/runtime-error.ts";
import { unless } from "../../runtime/waiting.ts";
import { invalid } from "../rpc/messages/fields.ts";
import { TooLarge } from "./failure-response.ts";

const DISCARD_IDLE_MS = 2_000;

export interface BodyLimits {
  /** The longest body that is read as a whole, and the longest line. */
  readonly bodyBytes: number;
  /** Between two pieces of a body. */
  readonly uploadIdleMs: number;
}

/** A request's body piece by piece, as it arrives. Ends with an error, not with an end, when the client goes or stalls. */
export async function* bodyChunks(request: Request, limits: BodyLimits): AsyncGenerator<Uint8Array> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw invalid(`the body is encoded (${encoding.slice(0, 40)}); send it as it is`);
  }
  if (request.body === null) return;
  const reader = request.body.getReader();
  const { signal } = request;
  let whole = false;
  try {
    for (;;) {
      const { done, value } = await nextChunk(reader, limits.uploadIdleMs, signal);
      whole = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!whole) discard(reader, limits, signal).catch(() => {});
  }
}

export async function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > limits.bodyBytes) {
    throw new TooLarge(`the body has ${announced} bytes, more than the ${limits.bodyBytes} that are accepted`);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bodyChunks(request, limits)) {
    size += chunk.byteLength;
    if (size > limits.bodyBytes) {
      throw new TooLarge(`the body has more than the ${limits.bodyBytes} bytes that are accepted`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/**
 * Takes in what a client still sends after it was refused, so that it comes to read the answer; cancelling at once would
 * cut the connection under it. Only so much of it: then the connection is cut.
 */
async function discard(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limits: BodyLimits,
  signal: AbortSignal,
): Promise<void> {
  let size = 0;
  try {
    while (size <= limits.bodyBytes) {
      const { done, value } = await nextChunk(reader, Math.min(limits.uploadIdleMs, DISCARD_IDLE_MS), signal);
      if (done) return;
      size += value.byteLength;
    }
  } finally {
    await reader.cancel();
  }
}

async function nextChunk(reader: ReadableStreamDefaultReader<Uint8Array>, idleMs: number, signal: AbortSignal) {
  const late = (): never => {
    throw new RuntimeError("CANCELLED", `no data arrived for ${idleMs / 1000} seconds; the request was given up`);
  };
  try {
    return await unless(reader.read(), { signal, waitMs: idleMs, late });
  } catch (error) {
    if (error instanceof RuntimeError) throw error;
    throw new RuntimeError("CANCELLED", "the request ended before its body was complete", { cause: error });
  }
}
