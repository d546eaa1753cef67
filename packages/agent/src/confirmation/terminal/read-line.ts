import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/** Nobody types more to answer a question. */
const LONGEST_LINE = 1000;
const LINE_END = /[\r\n]/;

/** The next line; undefined at the end of the input and for a line that is too long. What follows stays in the stream. */
export async function readLine(input: Readable, signal: AbortSignal): Promise<string | undefined> {
  signal.throwIfAborted();
  if (input.readableEnded || input.destroyed) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  let line = "";
  const onData = (chunk: Buffer | string): void => {
    // Only "yes" and an empty line mean something: latin1 has a character for each byte, and no state between chunks.
    const text = typeof chunk === "string" ? chunk : chunk.toString("latin1");
    const end = text.search(LINE_END);
    line += end === -1 ? text : text.slice(0, end);
    if (end === -1 && line.length <= LONGEST_LINE) return;
    stop();
    if (end !== -1 && end + 1 < text.length) input.unshift(chunk.slice(end + 1));
    resolve(line.length > LONGEST_LINE ? undefined : line);
  };
  const onEnd = (): void => resolve(undefined);
  const onAbort = (): void => reject(signal.reason);
  const stop = (): void => {
    input.pause();
    input.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", onEnd);
    signal.removeEventListener("abort", onAbort);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  input.on("end", onEnd).on("close", onEnd).on("error", onEnd).on("data", onData).resume();
  try {
    return await promise;
  } finally {
    stop();
  }
}

/** Long enough for what the terminal already holds to arrive. */
const TYPED_AHEAD_MS = 100;

/** Forgets what was typed before there was a question. */
export async function discardTypedAhead(input: Readable, signal: AbortSignal): Promise<void> {
  const ignore = (): void => {};
  input.on("data", ignore).on("error", ignore).resume();
  try {
    await sleep(TYPED_AHEAD_MS, undefined, { signal });
  } finally {
    input.pause();
    input.off("data", ignore).off("error", ignore);
  }
}
