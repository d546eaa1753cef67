import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { destroyResponse, type NodeResponse } from "./listener.ts";

/** Less is not worth the trouble. */
const LARGE = 1 << 18;
/** What may wait for the caller to take it: a few pieces, so that not each of them stops the program and wakes it again. */
const MOST_HELD = 1 << 19;

/**
 * Passes on the content of an answer that begins to come over `inside`. Half of it does not look like the whole. Much of it, of a length that is
 * known, goes from one socket to the other: the parser has found where it begins, and would only copy it from there.
 */
export function passOn(answer: IncomingMessage, method: string, inside: Socket, response: NodeResponse): void {
  const length = contentLength(answer, method);
  if (length >= LARGE) {
    // When the piece that has the head is parsed to its end: content may begin in it.
    process.nextTick(passByParser, answer, length, inside, response);
    return;
  }
  answer.once("error", () => destroyResponse(response));
  answer.pipe(response as NodeJS.WritableStream);
}

/** 0 where the parser has to find the end, or there is no content at all. */
function contentLength({ headers, statusCode = 0 }: IncomingMessage, method: string): number {
  const hasNone = method === "HEAD" || statusCode === 204 || statusCode === 304;
  if (hasNone || headers["transfer-encoding"] !== undefined) return 0;
  return Number(headers["content-length"] ?? 0);
}

function passByParser(answer: IncomingMessage, length: number, inside: Socket, response: NodeResponse): void {
  const target = response as NodeJS.WritableStream;
  let left = length;
  const take = (data: Buffer): void => {
    const content = data.subarray(0, left);
    left -= content.length;
    if (left === 0) {
      inside.pause();
      target.end(content);
    } else if (!target.write(content) && response.writableLength > MOST_HELD) {
      inside.pause();
      target.once("drain", () => inside.resume());
    }
  };
  // To the parser it looks as if no more came, and then broke off.
  inside.removeAllListeners("data");
  answer.on("error", () => {});
  inside.once("close", () => {
    if (left > 0) destroyResponse(response);
  });
  const begun = answer.read() as Buffer | null;
  inside.on("data", take);
  if (begun !== null) take(begun);
  if (left > 0) inside.resume();
  if (left > 0 && inside.destroyed) destroyResponse(response);
}
