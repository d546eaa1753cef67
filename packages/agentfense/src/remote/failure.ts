import { ERROR_DOMAIN } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { Code, ConnectError } from "@connectrpc/connect";
import { CommandFailure } from "../command.ts";

/** What to do about an error whose answer is on this side of the wire. */
const HINTS: Readonly<Record<string, string>> = {
  UNAUTHENTICATED: "put a key in AGENTFENSE_API_KEY; an administrator makes one with: agentfense key create",
  SANDBOX_NOT_RUNNING: "start it first: agentfense sandbox start ID",
  CODEBASE_IN_USE: "destroy those sandboxes first, or add --force",
  UPLOAD_MISMATCH: "a file changed while it was being sent; try again",
  VERSION_CONFLICT: "somebody else changed the codebase; look at: agentfense codebase versions ID",
  ROLE_FORBIDS: "ask for a key with another role",
};

/** Runs what talks to a server; its errors become one line: what went wrong, and what to do about it. */
export async function explainingFailures<T>(url: string, work: () => Promise<T>, exitCode?: number): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    throw new CommandFailure(describeFailure(error, url), exitCode);
  }
}

function describeFailure(error: ConnectError, url: string): string {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === ERROR_DOMAIN);
  if (info === undefined) return withoutDetails(error, url);
  // Ours first: the server speaks to every client, we to somebody at a command line.
  const hint = HINTS[info.reason] ?? (info.metadata.hint || undefined);
  return `${error.rawMessage}${hint === undefined ? "" : ` (${hint})`}`;
}

/** Reasons that have a better explanation than their own. */
const CONNECTION_REASONS: Readonly<Record<string, (url: string) => string>> = {
  ECONNREFUSED: (url) => `nothing listens at ${url}; is the server running? (agentfense serve, or --endpoint)`,
  ENOTFOUND: (url) => `there is no machine of that name: ${url}`,
  EAI_AGAIN: (url) => `there is no machine of that name: ${url}`,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  ERR_SSL_WRONG_VERSION_NUMBER: (url) => `${url} does not speak TLS; use http://`,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: (url) => `${url} does not speak TLS; use http://`,
};

/** Not the server's own words: the connection, or something in between. */
function withoutDetails(error: ConnectError, url: string): string {
  const explain = CONNECTION_REASONS[causeOf(error) ?? ""];
  if (explain !== undefined) return explain(url);
  if (error.code === Code.Unavailable) return `cannot reach ${url}: ${error.rawMessage}`;
  if (error.code === Code.Unimplemented) return `the server at ${url} cannot do that: ${error.rawMessage}`;
  if (error.code === Code.Canceled) return `the connection to ${url} was closed (does it speak TLS? then use https://)`;
  return error.rawMessage;
}

function untrusted(url: string): string {
  return `the certificate of ${url} is signed by nobody we know; give the right ones with --ca FILE`;
}

function causeOf(error: ConnectError): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
  }
  return undefined;
}
