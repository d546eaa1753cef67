import { readFile } from "node:fs/promises";
import { InvalidConfigurationError } from "@agentfense/sdk";
import { type Endpoint, chooseEndpoint as endpointOf, sendsKeyInTheClear } from "@agentfense/sdk/engine";
import { UsageError } from "../command.ts";
import { warn } from "../output.ts";
import { printable } from "../terminal.ts";

/** How to reach a server, for `parseArguments`. */
export const ENDPOINT_OPTIONS = {
  endpoint: { type: "string" },
  "api-key": { type: "string" },
  ca: { type: "string" },
} as const;

export const ENDPOINT_HELP = `  --endpoint URL    the server (default: AGENTFENSE_ENDPOINT): http://127.0.0.1:9000 for one on this machine,
                    https:// is TLS, unix:/path a socket
  --api-key KEY     better in AGENTFENSE_API_KEY: other users of this machine can see what is on a command line
  --ca FILE         certificates (PEM) to trust for https:// besides the usual ones`;

interface EndpointValues {
  readonly endpoint?: string | undefined;
  readonly "api-key"?: string | undefined;
  readonly ca?: string | undefined;
}

export async function chooseEndpoint(values: EndpointValues, environment: NodeJS.ProcessEnv): Promise<Endpoint> {
  if (values.endpoint === undefined && !environment.AGENTFENSE_ENDPOINT) {
    throw new UsageError("no server is named", {
      hint: "name one with --endpoint, as in --endpoint http://127.0.0.1:9000, or in AGENTFENSE_ENDPOINT",
    });
  }
  const endpoint = chosen({ endpoint: values.endpoint, apiKey: values["api-key"] }, environment);
  if (values.ca !== undefined && !endpoint.url.startsWith("https:")) {
    throw new UsageError("--ca goes with an https:// endpoint");
  }
  if (sendsKeyInTheClear(endpoint)) {
    warn(`the API key travels unencrypted to ${printable(new URL(endpoint.url).host)}; use https://`);
  }
  return values.ca === undefined ? endpoint : { ...endpoint, tls: { ca: await readCertificates(values.ca) } };
}

/** What is wrong with an endpoint is a mistake on the command line here. */
function chosen(...choice: Parameters<typeof endpointOf>): Endpoint {
  try {
    return endpointOf(...choice);
  } catch (error) {
    throw error instanceof InvalidConfigurationError ? new UsageError(printable(error.message)) : error;
  }
}

async function readCertificates(path: string): Promise<string> {
  return await readFile(path, "utf8").catch((error: Error) => {
    throw new UsageError(`cannot read --ca: ${printable(error.message)}`);
  });
}
