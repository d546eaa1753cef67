import { InvalidConfigurationError } from "../errors.ts";
import type { ConnectionOptions, TlsOptions } from "../model/options.ts";

/** Where a server is, and how to convince it and ourselves. */
export interface Endpoint {
  /** "https://host:9000", or "unix:/path" */
  readonly url: string;
  readonly apiKey?: string | undefined;
  readonly tls?: TlsOptions | undefined;
}

/** What the options say, else the environment. No address is assumed: whoever listened there first would be trusted. */
export function chooseEndpoint(
  options: Pick<ConnectionOptions, "endpoint" | "apiKey" | "tls">,
  environment: Readonly<Record<string, string | undefined>>,
): Endpoint {
  const named = options.endpoint ?? (environment.AGENTFENSE_ENDPOINT || undefined);
  if (named === undefined)
    throw invalid("no server is named", "give its address as the option endpoint, or in AGENTFENSE_ENDPOINT");
  const url = parseEndpoint(named);
  const apiKey = options.apiKey ?? (environment.AGENTFENSE_API_KEY || undefined);
  // The key itself is in no message: those end in logs.
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) throw invalid("the API key has characters no key has");
  if (options.tls !== undefined && !url.startsWith("https:")) throw invalid("tls goes with an https:// endpoint");
  return { url, apiKey, tls: options.tls };
}

/** The path of a Unix socket; undefined when the endpoint is on a network. */
export function socketPathOf({ url }: Pick<Endpoint, "url">): string | undefined {
  return /^unix:(\/.+)$/s.exec(url)?.[1];
}

/** A URL, `unix:` with an absolute path, or HOST:PORT as the clients of the earlier server wrote it. */
function parseEndpoint(text: string): string {
  return text.startsWith("unix:") ? parseSocket(text) : parseUrl(text).origin;
}

function parseSocket(text: string): string {
  // gRPC also knows the form of a URL, unix:///path.
  const url = text.replace(/^unix:\/\/(?=\/)/, "unix:");
  if (!/^unix:\/[^/\0][^\0]*$/.test(url)) {
    throw invalid(`a socket is unix: and an absolute path, not ${JSON.stringify(text)}`);
  }
  return url;
}

function parseUrl(text: string): URL {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (
    url === undefined ||
    !["http:", "https:"].includes(url.protocol) ||
    !["", "/"].includes(url.pathname + url.search)
  ) {
    throw invalid(`an endpoint is http://HOST:PORT, https://HOST:PORT or unix:/PATH, not ${JSON.stringify(text)}`);
  }
  if (url.username !== "" || url.password !== "") throw invalid("an endpoint has no user and no password in it");
  return url;
}

/** Whether the key of an endpoint can be read on its way. */
export function sendsKeyInTheClear({ url, apiKey }: Endpoint): boolean {
  const { protocol, hostname } = new URL(url);
  return apiKey !== undefined && protocol === "http:" && !isThisMachine(hostname);
}

function isThisMachine(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

function invalid(message: string, hint?: string): InvalidConfigurationError {
  return new InvalidConfigurationError(message, { code: "INVALID_ARGUMENT", hint });
}
