import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Engine } from "../engine.ts";
import { ConnectionError, InvalidConfigurationError, type SandboxError } from "../errors.ts";
import type { CallOptions, ConnectionOptions } from "../model/options.ts";
import { CallStream, RequestFailure, RequestSource } from "./call-stream.ts";
import { isIdempotent, pause, pauseBefore } from "./retry.ts";
import { sandboxError } from "./sandbox-error.ts";

const DEFAULT_REQUEST_TIMEOUT_MS = 60_000;
const DEFAULT_RETRIES = 3;

export interface RpcOptions extends CallOptions {
  /** Instead of the usual one; Infinity for none. */
  readonly timeoutMs?: number | undefined;
}

/** Messages of a streamed request. They can be sent again only when they can be made again. */
export interface Requests<T> {
  readonly make: () => AsyncIterable<T>;
  readonly repeatable: boolean;
}

interface Attempts {
  readonly signal: AbortSignal | undefined;
  /** Aborted when nobody is interested any more, which is nothing to tell of. */
  readonly left?: AbortSignal;
  readonly deadline: Deadline;
  readonly repeatable: boolean;
}

/** One attempt of a call, over when it is disposed of. */
interface Call extends Disposable {
  readonly signal: AbortSignal;
  /** What went wrong, when that may have been our own impatience. */
  readonly explain: (error: unknown) => unknown;
}

const EXPIRED = new ConnectError("there was no answer in time", Code.DeadlineExceeded);

/**
 * Calls over a transport, with what all of them have in common: deadlines, retries, aborts, and errors in our own words.
 * An abort throws the signal's reason, everything else that goes wrong is a SandboxError.
 */
export class Rpc {
  readonly #engine: Pick<Engine, "name" | "transport">;
  readonly #requestTimeoutMs: number;
  readonly #retries: number;
  readonly #running = new Set<AbortController>();
  #closed = false;

  constructor(
    engine: Pick<Engine, "name" | "transport">,
    { requestTimeoutMs, retries }: Pick<ConnectionOptions, "requestTimeoutMs" | "retries"> = {},
  ) {
    this.#engine = engine;
    this.#requestTimeoutMs = requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
    if (!(this.#requestTimeoutMs > 0)) throw invalid(`requestTimeoutMs is more than 0, not ${requestTimeoutMs}`);
    this.#retries = retries ?? DEFAULT_RETRIES;
    if (!(this.#retries >= 0)) throw invalid(`retries is 0 or more, not ${retries}`);
  }

  /** No call begins any more, and those that run fail. */
  close(): void {
    this.#closed = true;
    for (const call of this.#running) call.abort();
  }

  /** One message there, one back. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    input: MessageInitShape<I>,
    { signal, timeoutMs = this.#requestTimeoutMs }: RpcOptions = {},
  ): Promise<MessageShape<O>> {
    const deadline = Deadline.after(timeoutMs);
    const attempt = async (): Promise<MessageShape<O>> => {
      using call = this.#begin({ signal, deadline });
      try {
        return (await this.#engine.transport.unary(method, call.signal, undefined, undefined, input)).message;
      } catch (error) {
        throw call.explain(error);
      }
    };
    return await this.#repeating(attempt, { signal, deadline, repeatable: isIdempotent(method) });
  }

  /** Many messages there, one back. Without a deadline: content may be large. */
  async clientStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    requests: Requests<MessageInitShape<I>>,
    { signal }: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const deadline = Deadline.NONE;
    const attempt = async (): Promise<MessageShape<O>> => {
      for await (const message of this.#messages(method, requests.make(), { signal, deadline })) return message;
      throw new ConnectError("the call ended without an answer", Code.Unavailable);
    };
    const repeatable = requests.repeatable && isIdempotent(method);
    return await this.#repeating(attempt, { signal, deadline, repeatable });
  }

  /** One message there, many back. */
  serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    input: MessageInitShape<I>,
    options: RpcOptions = {},
  ): CallStream<MessageShape<O>> {
    const left = new AbortController();
    return new CallStream(this.#serverMessages(method, input, options, left.signal), left);
  }

  /** Many messages in both directions. */
  bidiStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    input: AsyncIterable<MessageInitShape<I>>,
    options: RpcOptions = {},
  ): CallStream<MessageShape<O>> {
    const left = new AbortController();
    return new CallStream(this.#bidiMessages(method, input, options, left.signal), left);
  }

  async *#serverMessages<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    input: MessageInitShape<I>,
    { signal, timeoutMs }: RpcOptions,
    left: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    const deadline = Deadline.after(timeoutMs);
    // Repeated only up to the first message: whoever has seen one would see it again.
    const begin = async () => {
      const messages = this.#messages(method, only(input), { signal, left, deadline });
      return { messages, first: await messages.next() };
    };
    try {
      const attempts = { signal, left, deadline, repeatable: isIdempotent(method) };
      const { messages, first } = await this.#repeating(begin, attempts);
      try {
        if (first.done !== true) yield first.value;
        yield* messages;
      } finally {
        await messages.return();
      }
    } catch (error) {
      if (left.aborted) return;
      throw this.#failure(error, signal, deadline);
    }
  }

  async *#bidiMessages<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    input: AsyncIterable<MessageInitShape<I>>,
    { signal, timeoutMs }: RpcOptions,
    left: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    const deadline = Deadline.after(timeoutMs);
    try {
      yield* this.#messages(method, input, { signal, left, deadline });
    } catch (error) {
      if (left.aborted) return;
      throw this.#failure(error, signal, deadline);
    }
  }

  /** The messages of one call, and errors as the transport throws them. */
  async *#messages<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    input: AsyncIterable<MessageInitShape<I>>,
    { signal, left, deadline }: { signal: AbortSignal | undefined; left?: AbortSignal; deadline: Deadline },
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    using call = this.#begin({ signal, left, deadline });
    using requests = new RequestSource(input);
    try {
      const response = await this.#engine.transport.stream(method, call.signal, undefined, undefined, requests);
      const messages = response.message[Symbol.asyncIterator]();
      for (let next = await messages.next(); next.done !== true; next = await messages.next()) yield next.value;
    } catch (error) {
      throw requests.failure ?? call.explain(error);
    }
  }

  /**
   * A call ends with its signal and in no other way: leaving a transport's iterator is nothing that a server hears of. The
   * deadline is kept here too: the timer of a transport can outlive its call, and the process would wait for it.
   */
  #begin({
    signal,
    left,
    deadline,
  }: {
    signal: AbortSignal | undefined;
    left?: AbortSignal | undefined;
    deadline: Deadline;
  }): Call {
    signal?.throwIfAborted();
    left?.throwIfAborted();
    if (this.#closed) throw closedError();
    const call = new AbortController();
    this.#running.add(call);
    // A stream that is left without being read on is not there to say that it is over.
    const timer = deadline.timer(() => call.abort(EXPIRED));
    left?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        this.#running.delete(call);
      },
      { once: true },
    );
    return {
      signal: AbortSignal.any([call.signal, signal, left].filter((each) => each !== undefined)),
      explain: (error) => (call.signal.reason === EXPIRED ? EXPIRED : error),
      [Symbol.dispose]: () => {
        clearTimeout(timer);
        this.#running.delete(call);
        call.abort();
      },
    };
  }

  async #repeating<T>(attempt: () => Promise<T>, { signal, left, deadline, repeatable }: Attempts): Promise<T> {
    for (let made = 0; ; made++) {
      try {
        return await attempt();
      } catch (error) {
        if (left?.aborted === true) throw error;
        const failure = this.#failure(error, signal, deadline);
        const pauseMs = repeatable && made < this.#retries ? pauseBefore(made, failure) : undefined;
        if (pauseMs === undefined || !deadline.allows(pauseMs)) throw failure;
        await pause(pauseMs, signal);
      }
    }
  }

  /** What a failed call is for its caller. Throws what is none of our errors: the reason of an abort, a failure of the caller's own. */
  #failure(error: unknown, signal: AbortSignal | undefined, { totalMs: timeoutMs }: Deadline): SandboxError {
    signal?.throwIfAborted();
    if (error instanceof RequestFailure) throw error.error;
    if (this.#closed) return closedError(error);
    return sandboxError(error, { name: this.#engine.name, timeoutMs });
  }
}

function invalid(message: string): InvalidConfigurationError {
  return new InvalidConfigurationError(message, { code: "INVALID_ARGUMENT" });
}

function closedError(cause?: unknown): SandboxError {
  return new ConnectionError("the client is closed", { code: "CONNECTION_FAILED", cause });
}

async function* only<T>(message: T): AsyncGenerator<T> {
  yield message;
}

/** A timer cannot wait for longer; beyond is for ever. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The end of somebody's patience, over all attempts of a call. */
export class Deadline {
  static readonly NONE = new Deadline(undefined);
  readonly totalMs: number | undefined;
  readonly #endsAtMs: number;

  private constructor(totalMs: number | undefined) {
    this.totalMs = totalMs;
    this.#endsAtMs = performance.now() + (totalMs ?? Number.POSITIVE_INFINITY);
  }

  /** 0, undefined and what is beyond any timer are no deadline. */
  static after(totalMs: number | undefined): Deadline {
    if (totalMs === undefined || !(totalMs > 0) || totalMs > LONGEST_TIMER_MS) return Deadline.NONE;
    return new Deadline(totalMs);
  }

  /** Calls when it is here; nothing to wait for without one. */
  timer(call: () => void): ReturnType<typeof setTimeout> | undefined {
    if (this.totalMs === undefined) return undefined;
    return setTimeout(call, Math.max(1, Math.ceil(this.#endsAtMs - performance.now())));
  }

  /** There is time for waiting so long, and for something after it. */
  allows(pauseMs: number): boolean {
    return performance.now() + pauseMs < this.#endsAtMs;
  }
}
