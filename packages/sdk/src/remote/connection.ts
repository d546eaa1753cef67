import type { ClientHttp2Stream, Http2Session, SecureClientSessionOptions } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { Http2SessionManager } from "@connectrpc/connect-node";

/** When a connection counts as lost. */
export interface ConnectionPatience {
  /**
   * A peer that vanished without a word (a machine without power, a cable) is noticed by unanswered pings, which are sent only
   * while a call runs and nothing arrives.
   */
  readonly pingIntervalMs: number;
  readonly pingTimeoutMs: number;
  /** Streams have no deadline that would end the waiting for a machine that does not answer at all. */
  readonly connectMs: number;
}

/** Generous: the event loop of a busy process may not get to an answer at once. */
const USUAL_PATIENCE: ConnectionPatience = { pingIntervalMs: 15_000, pingTimeoutMs: 15_000, connectMs: 10_000 };

/** One HTTP/2 connection, made with the first request and again after it was lost. It keeps no process alive while it is idle. */
export class Connection {
  readonly authority: string;
  readonly #sessions: Http2SessionManager;
  readonly #connectMs: number;
  readonly #heard = new WeakSet<Http2Session>();

  constructor(url: string, options: SecureClientSessionOptions, patience: ConnectionPatience = USUAL_PATIENCE) {
    const { connectMs, ...pings } = patience;
    this.#sessions = new Http2SessionManager(url, pings, options);
    this.#connectMs = connectMs;
    this.authority = this.#sessions.authority;
  }

  async request(...request: Parameters<Http2SessionManager["request"]>): Promise<ClientHttp2Stream> {
    const state = this.#sessions.state();
    if (state !== "open" && state !== "idle") await this.#connectInTime();
    const stream = await this.#sessions.request(...request);
    this.#hear(stream.session);
    return stream;
  }

  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    this.#sessions.notifyResponseByteRead(stream);
  }

  /** Requests that run fail. */
  close(): void {
    this.#sessions.abort();
  }

  async #connectInTime(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(resolve, this.#connectMs, "late");
    });
    const outcome = await Promise.race([this.#sessions.connect(), late]);
    clearTimeout(timer);
    // Asking for a request now would connect once more.
    if (outcome === "error") throw this.#sessions.error() ?? new ConnectError("it was closed", Code.Unavailable);
    if (outcome !== "late") return;
    const error = new ConnectError(`no connection within ${this.#connectMs} ms`, Code.Unavailable);
    if (this.#sessions.state() === "connecting") this.#sessions.abort(error);
    throw error;
  }

  /**
   * The requests of a session tell how it ended, and whoever hears of it may close this connection at once. The session's own
   * error comes after that, when its manager does not listen any more, and would end the process.
   */
  #hear(session: Http2Session | undefined): void {
    if (session === undefined || this.#heard.has(session)) return;
    this.#heard.add(session);
    session.on("error", () => {});
  }
}
