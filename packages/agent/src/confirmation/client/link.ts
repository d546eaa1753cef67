import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { rootCertificates } from "node:tls";
import type { ConnectionOptions } from "@agentfense/sdk";
import { chooseEndpoint, sendsKeyInTheClear } from "@agentfense/sdk/engine";
import { type ClientOptions, WebSocket } from "ws";
import { AgentError } from "../../errors.ts";
import { CONFIRMATIONS_PATH, SUBPROTOCOL } from "../door/address.ts";
import { type ClientText, POLICY_VIOLATION, parseMessage, type ServerMessage, serverMessage } from "../protocol.ts";

/** A connection could not be made, or is gone. */
export class ConfirmationConnectionError extends AgentError {
  override readonly name = "ConfirmationConnectionError";
  /** To try again would end the same way: the key is not valid, the server does not speak this protocol. */
  readonly isFinal: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isFinal: boolean }) {
    super(message, options);
    this.isFinal = options.isFinal;
  }
}

type Welcome = ServerMessage & { readonly type: "welcome" };

/** A connection that is welcome. */
export interface Link {
  readonly welcome: Welcome;
  /** Does nothing once the connection is gone. */
  send(message: ClientText): void;
}

export interface LinkHandlers {
  readonly onOpen: (link: Link) => void;
  readonly onMessage: (message: ServerMessage) => void;
  readonly signal: AbortSignal;
}

/** For the connection and the welcome. */
const OPENING_MS = 10_000;
/** A list of what is pending comes in parts that are smaller than this. */
const LARGEST_MESSAGE = 64 * 1024 * 1024;
/** A server that was silent for so many of its heartbeats is gone. */
const MISSED_HEARTBEATS = 2.5;
const MESSAGE_TOO_BIG = 1009;

/** One connection to a door, from its beginning to its end: gives why it ended. The signal ends it, too. */
export async function runLink(
  target: LinkTarget,
  hello: Omit<ClientText & { readonly type: "hello" }, "type">,
  { onOpen, onMessage, signal }: LinkHandlers,
): Promise<ConfirmationConnectionError> {
  if (signal.aborted) return closedHere();
  const socket = new WebSocket(target.url, [SUBPROTOCOL], {
    ...target.options,
    perMessageDeflate: false,
    maxPayload: LARGEST_MESSAGE,
    // A redirect would take the key elsewhere.
    followRedirects: false,
  });
  const { promise, resolve } = Promise.withResolvers<ConfirmationConnectionError>();
  let failure: ConfirmationConnectionError | undefined;
  const end = (error?: ConfirmationConnectionError): void => {
    failure ??= error;
    socket.terminate();
  };
  const onAbort = (): void => end(closedHere());
  signal.addEventListener("abort", onAbort, { once: true });

  let isOpen = false;
  let silenceMs = OPENING_MS;
  const isSilent = (): void => end(new ConfirmationConnectionError("the server does not answer", { isFinal: false }));
  let silence = setTimeout(isSilent, silenceMs);
  const hear = (): void => {
    clearTimeout(silence);
    silence = setTimeout(isSilent, silenceMs);
  };
  const send = (message: ClientText): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  const receive = (message: ServerMessage | undefined): void => {
    if (message === undefined || (message.type === "welcome" && isOpen)) {
      end(new ConfirmationConnectionError("the server sent what is not a message of this protocol", { isFinal: true }));
    } else if (message.type === "error") {
      failure ??= new ConfirmationConnectionError(`the server says: ${message.message}`, { isFinal: true });
    } else if (message.type === "welcome") {
      isOpen = true;
      silenceMs = message.heartbeatMs * MISSED_HEARTBEATS;
      onOpen({ welcome: message, send });
    } else onMessage(message);
  };

  socket.on("open", () => send({ type: "hello", ...hello }));
  socket.on("ping", hear);
  socket.on("message", (data, isBinary) => {
    receive(isBinary ? undefined : parseMessage(serverMessage, data.toString()));
    hear();
  });
  socket.on("unexpected-response", (request, response) => {
    const status = response.statusCode ?? 0;
    failure ??= new ConfirmationConnectionError(`the server refuses the connection (HTTP ${status})`, {
      isFinal: isFinalStatus(status),
    });
    request.destroy();
    end();
  });
  socket.on("error", (error) => {
    failure ??= new ConfirmationConnectionError(`cannot reach the server: ${error.message}`, {
      cause: error,
      isFinal: false,
    });
  });
  socket.once("close", (code) => {
    const isFinal = code === POLICY_VIOLATION || code === MESSAGE_TOO_BIG;
    resolve(failure ?? new ConfirmationConnectionError(`the connection ended (${code})`, { isFinal }));
  });
  try {
    return await promise;
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", onAbort);
  }
}

function closedHere(): ConfirmationConnectionError {
  return new ConfirmationConnectionError("closed", { isFinal: true });
}

/** Neither the wrong key nor the wrong path get better; a crowded or restarting server does. */
function isFinalStatus(status: number): boolean {
  return status >= 300 && status < 500 && status !== 408 && status !== 429;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;

/** Longer each time, and not the same for all who lost the same server. */
export async function pauseBeforeAttempt(attempt: number, signal: AbortSignal): Promise<void> {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS);
  await sleep(longest * (0.5 + Math.random() / 2), undefined, { signal });
}

export interface ConfirmationEndpoint {
  /** The server's address for REST: "http://HOST:PORT", "https://…", "ws://…", "wss://…" or "unix:/PATH". */
  readonly endpoint: string;
  /** Default: AGENTFENSE_API_KEY of the environment. */
  readonly apiKey?: string | undefined;
  /** With an encrypted endpoint. */
  readonly tls?: ConnectionOptions["tls"];
}

/** How a door is reached. */
export interface LinkTarget {
  readonly url: string;
  readonly options: ClientOptions;
}

export function linkTarget({ endpoint, apiKey, tls }: ConfirmationEndpoint): LinkTarget {
  const asHttp = endpoint.replace(/^ws(?=s?:\/\/)/i, "http");
  const chosen = chooseEndpoint({ endpoint: asHttp, apiKey, ...(tls === undefined ? {} : { tls }) }, process.env);
  const socketPath = /^unix:(\/.+)$/s.exec(chosen.url)?.[1];
  if (sendsKeyInTheClear(chosen)) {
    process.emitWarning(`the API key travels unencrypted to ${chosen.url}; use https://`, "SecurityWarning");
  }
  return {
    // A request names a host all the same: over a socket it is this machine.
    url: `${socketPath === undefined ? chosen.url.replace(/^http/, "ws") : "ws://localhost"}${CONFIRMATIONS_PATH}`,
    options: {
      headers: chosen.apiKey === undefined ? {} : { authorization: `Bearer ${chosen.apiKey}` },
      ...(socketPath === undefined ? {} : { createConnection: () => connect({ path: socketPath }) }),
      ...(tls?.ca === undefined ? {} : { ca: [...rootCertificates, tls.ca] }),
      ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls?.key === undefined ? {} : { key: tls.key }),
    },
  };
}
