import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";

/** No answer came, or none that could be read. */
export class AioConnectionError extends Error {
  override readonly name = "AioConnectionError";
}

export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
  /** The body was longer, and the rest was not read. */
  readonly isCut: boolean;
}

interface HttpCall {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  /** Without an answer in this time it has failed. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** How much of the answer's body is read: what is beyond is left if `cut`, else a failure. */
  readonly maxBytes: number;
  readonly cut?: boolean | undefined;
}

/**
 * Requests to one server. With agents of its own, which know of no proxy: AIO servers are containers on this machine or
 * nearby, and what is on loopback is not a proxy's business whatever HTTP_PROXY says.
 */
export class HttpClient {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: HttpAgent;

  constructor(baseUrl: string, headers: Readonly<Record<string, string>>) {
    this.#base = new URL(baseUrl.replace(/\/*$/, "/"));
    this.#headers = headers;
    const Agent = this.#base.protocol === "https:" ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true });
  }

  get name(): string {
    return this.#base.origin + this.#base.pathname;
  }

  async call({ method, path, body, timeoutMs, signal, maxBytes, cut = false }: HttpCall): Promise<HttpAnswer> {
    signal?.throwIfAborted();
    const time = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    const until = signal === undefined ? time : AbortSignal.any([signal, time]);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const options: RequestOptions = {
      method,
      agent: this.#agent,
      signal: until,
      headers: {
        ...this.#headers,
        accept: "application/json, */*",
        ...(text === undefined
          ? {}
          : { "content-type": "application/json", "content-length": `${Buffer.byteLength(text)}` }),
      },
    };
    try {
      const incoming = await this.#send(new URL(path, this.#base), options, text);
      return await bodyOf(incoming, maxBytes, cut);
    } catch (error) {
      signal?.throwIfAborted();
      const why = time.aborted ? `no answer in ${Math.ceil(timeoutMs)} ms` : errorText(error);
      throw new AioConnectionError(`${method} ${this.name}${path}: ${why}`, { cause: error });
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(url: URL, options: RequestOptions, text: string | undefined): Promise<IncomingMessage> {
    const answer = Promise.withResolvers<IncomingMessage>();
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(url, options, answer.resolve);
    request.once("error", answer.reject);
    request.end(text);
    return answer.promise;
  }
}

async function bodyOf(incoming: IncomingMessage, maxBytes: number, cut: boolean): Promise<HttpAnswer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.byteLength;
    if (size <= maxBytes) continue;
    if (!cut) throw new Error(`the answer has more than ${maxBytes} bytes`);
    incoming.destroy();
    return { status: incoming.statusCode!, body: Buffer.concat(pieces).subarray(0, maxBytes), isCut: true };
  }
  return { status: incoming.statusCode!, body: Buffer.concat(pieces), isCut: false };
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code) : String(error);
}
