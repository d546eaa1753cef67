import { once } from "node:events";
import http from "node:http";

export interface RestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body. */
  readonly json: Record<string, unknown>;
}

/** Plain HTTP, as `curl` would do it. */
export class RestClient {
  /** Every request that was made. */
  readonly requested: { readonly verb: string; readonly target: string }[] = [];
  readonly #base: string;
  readonly #key: string | undefined;

  /** `base`: "http://127.0.0.1:8080" */
  constructor(base: string, options: { readonly key?: string } = {}) {
    this.#base = base;
    this.#key = options.key;
  }

  async request(
    method: string,
    path: string,
    body?: unknown,
    options: { readonly headers?: Readonly<Record<string, string>>; readonly key?: string } = {},
  ): Promise<RestAnswer> {
    this.requested.push({ verb: method, target: path });
    const key = options.key ?? this.#key;
    const raw = body instanceof Uint8Array || typeof body === "string";
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": raw ? "application/octet-stream" : "application/json" }),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      get json() {
        return JSON.parse(text) as Record<string, unknown>;
      },
    };
  }

  /**
   * The target exactly as written: fetch would resolve `..` before it is sent. The body is sent as it is, with the headers
   * that are given and no others.
   */
  async raw(
    method: string,
    target: string,
    body?: string | Uint8Array,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RestAnswer> {
    this.requested.push({ verb: method, target });
    const call = http.request(this.#base, { method, path: target, headers: { ...headers } });
    call.end(body);
    const [response] = (await once(call, "response")) as [http.IncomingMessage];
    const answer = Buffer.concat(await response.toArray()).toString("utf8");
    return {
      status: response.statusCode ?? 0,
      headers: new Headers(response.headers as Record<string, string>),
      text: answer,
      get json() {
        return JSON.parse(answer) as Record<string, unknown>;
      },
    };
  }

  /** A stream of server-sent events as it comes; leaving the loop closes the connection. */
  async *events(
    method: string,
    path: string,
    body?: unknown,
    options: { readonly headers?: Readonly<Record<string, string>> } = {},
  ): AsyncGenerator<ServerSentEvent> {
    this.requested.push({ verb: method, target: path });
    const close = new AbortController();
    try {
      const response = await fetch(`${this.#base}${path}`, {
        method,
        signal: close.signal,
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...options.headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
      const decoder = new TextDecoder();
      let text = "";
      for await (const chunk of response.body!) {
        text += decoder.decode(chunk, { stream: true });
        const blocks = text.split("\n\n");
        text = blocks.pop() ?? "";
        for (const block of blocks) {
          const event = parseEvent(block);
          if (event !== undefined) yield event;
        }
      }
    } finally {
      close.abort();
    }
  }

  get(path: string): Promise<RestAnswer> {
    return this.request("GET", path);
  }

  post(path: string, body: unknown = {}): Promise<RestAnswer> {
    return this.request("POST", path, body);
  }

  delete(path: string): Promise<RestAnswer> {
    return this.request("DELETE", path);
  }
}

export interface ServerSentEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: Record<string, unknown>;
}

/** undefined for a comment. */
function parseEvent(block: string): ServerSentEvent | undefined {
  const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]));
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { event: fields.get("event") ?? "message", id: fields.get("id"), data: JSON.parse(data) };
}
