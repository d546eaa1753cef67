import { ERROR_DOMAIN } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { SandboxError } from "@agentfense/sdk";
import { Code, ConnectError } from "@connectrpc/connect";
import { CommandFailure } from "../command.ts";
import { printable } from "../terminal.ts";

/** What to do about an error whose answer is on this side of the wire. */
const HINTS: Readonly<Record<string, string>> = {
  UNAUTHENTICATED: "put a key in AGENTFENSE_API_KEY; an administrator makes one with: agentfense key create",
  SANDBOX_NOT_RUNNING: "start it first: agentfense sandbox start ID",
  SANDBOX_PAUSED: "resume it first: agentfense sandbox resume ID",
  CODEBASE_IN_USE: "destroy those sandboxes first, or add --force",
  UPLOAD_MISMATCH: "a file changed while it was being sent; try again",
  VERSION_CONFLICT: "somebody else changed the codebase; look at: agentfense codebase versions ID",
  ROLE_FORBIDS: "ask for a key with another role",
};

/** Runs what talks to a server; its errors become what went wrong, and what to do about it. */
export async function explainingFailures<T>(url: string, work: () => Promise<T>, exitCode?: number): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // The SDK's errors have the server's own as their cause.
    const answer = error instanceof SandboxError ? error.cause : error;
    if (answer instanceof ConnectError) {
      const { message, hint } = describeFailure(answer, url);
      throw new CommandFailure(message, { exitCode, hint });
    }
    throw error instanceof SandboxError ? new CommandFailure(printable(error.message), { exitCode }) : error;
  }
}

interface Failure {
  readonly message: string;
  readonly hint?: string | undefined;
}

function describeFailure(error: ConnectError, url: string): Failure {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === ERROR_DOMAIN);
  if (info === undefined) return withoutDetails(error, url);
  // Ours first: the server speaks to every client, we to somebody at a command line.
  const hint = HINTS[info.reason] ?? (info.metadata.hint || undefined);
  return { message: error.rawMessage, hint };
}

/** Reasons that have a better explanation than their own. */
const CONNECTION_REASONS: Readonly<Record<string, (url: string) => Failure>> = {
  ECONNREFUSED: (url) => ({
    message: `nothing listens at ${url}; is the server running?`,
    hint: "start one with agentfense serve, or name another with --endpoint",
  }),
  ENOTFOUND: unknownMachine,
  EAI_AGAIN: unknownMachine,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  ERR_SSL_WRONG_VERSION_NUMBER: withoutTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: withoutTls,
};

/** Not the server's own words: the connection, or something in between. */
function withoutDetails(error: ConnectError, url: string): Failure {
  const explain = CONNECTION_REASONS[causeOf(error) ?? ""];
  if (explain !== undefined) return explain(url);
  if (error.code === Code.Unavailable) return { message: `cannot reach ${url}: ${error.rawMessage}` };
  if (error.code === Code.Unimplemented) {
    return { message: `the server at ${url} cannot do that: ${error.rawMessage}` };
  }
  if (error.code === Code.Canceled) {
    return { message: `the connection to ${url} was closed`, hint: "does it speak TLS? then use https://" };
  }
  return { message: error.rawMessage };
}

function unknownMachine(url: string): Failure {
  return { message: `there is no machine of that name: ${url}` };
}

function withoutTls(url: string): Failure {
  return { message: `${url} does not speak TLS`, hint: "use http://" };
}

function untrusted(url: string): Failure {
  return {
    message: `the certificate of ${url} is signed by nobody we know`,
    hint: "give the right ones with --ca FILE",
  };
}

function causeOf(error: ConnectError): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
  }
  return undefined;
}
