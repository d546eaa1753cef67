import { InvalidConfigurationError } from "../errors.ts";
import type { ConnectionOptions, TlsOptions } from "../model/options.ts";

const DEFAULT_ENDPOINT = "http://127.0.0.1:9000";

/** Where a server is, and how to convince it and ourselves. */
export interface Endpoint {
  /** "https://host:9000" */
  readonly url: string;
  readonly apiKey?: string | undefined;
  readonly tls?: TlsOptions | undefined;
}

/** What the options say, else the environment, else this machine. */
export function chooseEndpoint(
  options: Pick<ConnectionOptions, "endpoint" | "apiKey" | "tls">,
  environment: Readonly<Record<string, string | undefined>>,
): Endpoint {
  const url = parseEndpoint(options.endpoint ?? (environment.AGENTFENSE_ENDPOINT || DEFAULT_ENDPOINT));
  const apiKey = options.apiKey ?? (environment.AGENTFENSE_API_KEY || undefined);
  // The key itself is in no message: those end in logs.
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) throw invalid("the API key has characters no key has");
  if (options.tls !== undefined && url.protocol !== "https:") throw invalid("tls goes with an https:// endpoint");
  return { url: url.origin, apiKey, tls: options.tls };
}

/** A URL, or HOST:PORT as the clients of the earlier server wrote it. */
function parseEndpoint(text: string): URL {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (
    url === undefined ||
    !["http:", "https:"].includes(url.protocol) ||
    !["", "/"].includes(url.pathname + url.search)
  ) {
    throw invalid(`an endpoint is http://HOST:PORT or https://HOST:PORT, not ${JSON.stringify(text)}`);
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

function invalid(message: string): InvalidConfigurationError {
  return new InvalidConfigurationError(message, { code: "INVALID_ARGUMENT" });
}
