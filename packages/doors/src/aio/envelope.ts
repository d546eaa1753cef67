import { SandboxError, type SandboxErrorCode } from "@agentfense/sdk";
import { BodyRefusal } from "../body.ts";
import type { Problem } from "../shape.ts";

// What an AIO server answers with: `{ success, message, data, hint }`, also for most of what goes wrong.

/** A request that cannot be carried out, told in the envelope. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly data: unknown;
  readonly hint: string | undefined;

  constructor(
    message: string,
    options: { readonly status?: number; readonly data?: unknown; readonly hint?: string | undefined } = {},
  ) {
    super(message);
    this.status = options.status ?? 200;
    this.data = options.data ?? null;
    this.hint = options.hint;
  }
}

/** Data that needs words beside it. */
export class Remark {
  readonly data: unknown;
  readonly message: string;
  readonly hint: string | undefined;

  constructor(data: unknown, message: string, hint?: string) {
    this.data = data;
    this.message = message;
    this.hint = hint;
  }
}

export function accepted(answer: unknown): Response {
  const { data, message, hint } = answer instanceof Remark ? answer : new Remark(answer, "Operation successful");
  return Response.json({ success: true, message, data: data ?? null, hint: hint ?? null });
}

export function refused({ status, message, data, hint }: Refusal): Response {
  return Response.json({ success: false, message, data, hint: hint ?? null }, { status });
}

/** As FastAPI says that a request is not what it should be. */
export function unprocessable(detail: readonly Problem[]): Response {
  return Response.json({ detail }, { status: 422 });
}

/** Events for a client that reads as they come. Cancelling leaves the iterable. */
export function eventStream(events: AsyncIterable<ServerEvent>): Response {
  const iterator = events[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await iterator.next();
        if (next.done === true) controller.close();
        else controller.enqueue(encoder.encode(eventText(next.value)));
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
}

export interface ServerEvent {
  readonly event: string;
  readonly data: unknown;
  readonly id?: string | undefined;
}

function eventText({ event, data, id }: ServerEvent): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

const STATUSES: Readonly<Partial<Record<SandboxErrorCode, number>>> = {
  INVALID_ARGUMENT: 400,
  WORKDIR_UNUSABLE: 400,
  PROGRAM_NOT_FOUND: 400,
  UNAUTHENTICATED: 401,
  ROLE_FORBIDS: 403,
  SANDBOX_NOT_FOUND: 404,
  SESSION_NOT_FOUND: 404,
  SESSION_CLOSED: 404,
  SANDBOX_NOT_RUNNING: 409,
  SANDBOX_PAUSED: 409,
  SANDBOX_FAILED: 409,
  LIMIT_EXCEEDED: 429,
  RATE_LIMITED: 429,
  RESOURCES_EXHAUSTED: 429,
  DATABASE_UNAVAILABLE: 503,
  SHUTTING_DOWN: 503,
  RUNTIME_UNAVAILABLE: 503,
};

/** What a caller is told of a failure. What is not meant for callers is not told. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof BodyRefusal) return new Refusal(error.message, { status: error.status });
  if (!(error instanceof SandboxError)) return new Refusal("something went wrong inside the server", { status: 500 });
  const { message, hint, code } = error;
  return new Refusal(message, { status: STATUSES[code] ?? 500, hint });
}
