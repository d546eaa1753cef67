import { readFile } from "node:fs/promises";
import { UsageError } from "../command.ts";
import { warn } from "../output.ts";
import { printable } from "../terminal.ts";

/** How to reach a server, for `parseArguments`. */
export const ENDPOINT_OPTIONS = {
  endpoint: { type: "string" },
  "api-key": { type: "string" },
  ca: { type: "string" },
} as const;

export const ENDPOINT_HELP = `  --endpoint URL    the server (default: AGENTFENSE_ENDPOINT, else http://127.0.0.1:9000); https:// is TLS
  --api-key KEY     better in AGENTFENSE_API_KEY: other users of this machine can see what is on a command line
  --ca FILE         certificates (PEM) to trust for https:// besides the usual ones`;

const DEFAULT_ENDPOINT = "http://127.0.0.1:9000";

/** Where the server is, and how to convince it and ourselves. */
export interface Endpoint {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly certificates: string | undefined;
}

interface EndpointValues {
  readonly endpoint?: string | undefined;
  readonly "api-key"?: string | undefined;
  readonly ca?: string | undefined;
}

export async function chooseEndpoint(values: EndpointValues, environment: NodeJS.ProcessEnv): Promise<Endpoint> {
  const url = parseEndpoint(values.endpoint ?? (environment.AGENTFENSE_ENDPOINT || DEFAULT_ENDPOINT));
  const apiKey = values["api-key"] ?? (environment.AGENTFENSE_API_KEY || undefined);
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey))
    throw new UsageError("the API key has characters no key has");
  if (values.ca !== undefined && url.protocol !== "https:") throw new UsageError("--ca goes with an https:// endpoint");
  if (apiKey !== undefined && url.protocol === "http:" && !isThisMachine(url.hostname)) {
    warn(`the API key travels unencrypted to ${printable(url.host)}; use https://`);
  }
  return {
    url: url.origin,
    apiKey,
    certificates: values.ca === undefined ? undefined : await readCertificates(values.ca),
  };
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
    throw new UsageError(`an endpoint is http://HOST:PORT or https://HOST:PORT, not ${printable(text)}`);
  }
  if (url.username !== "" || url.password !== "") throw new UsageError("an endpoint has no user and no password in it");
  return url;
}

function isThisMachine(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

async function readCertificates(path: string): Promise<string> {
  return await readFile(path, "utf8").catch((error: Error) => {
    throw new UsageError(`cannot read --ca: ${printable(error.message)}`);
  });
}
