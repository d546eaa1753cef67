import assert from "node:assert/strict";
import { parentPort, type Transferable } from "node:worker_threads";

export interface AnswerOptions {
  /** What of an answer moves instead of being copied. */
  readonly transferOf?: (value: unknown) => readonly Transferable[];
  /** Before the thread ends because it was told to. */
  readonly onStop?: () => void;
}

/**
 * A thread's own end: answers what an AnsweringThread asks. Requests that wait take turns; one that computes holds up the
 * others, and nobody else.
 */
export function answer(
  handle: (request: never, context: { readonly signal: AbortSignal }) => unknown,
  { transferOf = () => [], onStop = () => {} }: AnswerOptions = {},
): void {
  const port = parentPort;
  assert(port !== null, "this file is the main program of a worker thread");
  const running = new Map<number, AbortController>();
  const send = (message: FromThread, transfer: readonly Transferable[] = []): void =>
    port.postMessage(message, [...transfer]);

  const run = async (id: number, request: unknown): Promise<void> => {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      // The two ends are typed by what they both import: the request is one that the handler knows.
      const value = await handle(request as never, { signal: controller.signal });
      send({ kind: "answer", id, value }, transferOf(value));
    } catch (error) {
      send({ kind: "failure", id, failure: failureOf(error) });
    } finally {
      running.delete(id);
    }
  };

  port.on("message", (message: ToThread) => {
    if (message.kind === "ask") void run(message.id, message.request);
    else if (message.kind === "abort") running.get(message.id)?.abort();
    else {
      onStop();
      port.close();
    }
  });
  send({ kind: "started" });
}

/** From the caller's thread to one that answers. */
export type ToThread =
  | { readonly kind: "ask"; readonly id: number; readonly request: unknown }
  | { readonly kind: "abort"; readonly id: number }
  | { readonly kind: "stop" };

/** And back. */
export type FromThread =
  | { readonly kind: "started" }
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly failure: Failure };

/** An error as data: structured clone would drop its class and everything but the message. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** "ENOENT", "DELTA_IN_USE" … of the error, if it had one. */
  readonly code: string | undefined;
  /** The number of an error of the kernel's. */
  readonly errno: number | undefined;
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) {
    return { name: "Error", message: String(error), stack: undefined, code: undefined, errno: undefined };
  }
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    code: typeof code === "string" ? code : undefined,
    errno: typeof errno === "number" ? errno : undefined,
  };
}
