import { readFile } from "node:fs/promises";
import { InvalidConfigurationError, SandboxClient, SandboxError } from "@agentfense/sdk";
import { chooseEndpoint, type Endpoint, type Engine, RemoteEngine, sendsKeyInTheClear } from "@agentfense/sdk/engine";
import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { print, printJson, warn } from "../output.ts";
import { printable } from "../terminal.ts";
import type { Connected, JsonForm, JsonObject, Said } from "./command.ts";

interface ServerValues {
  readonly endpoint?: string | undefined;
  readonly "api-key"?: string | undefined;
  readonly ca?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Runs a command against the server that is named, and prints what it says. Gives the exit code. */
export async function withClient(
  values: ServerValues,
  { jsonForm, failureCode }: { readonly jsonForm?: JsonForm | undefined; readonly failureCode?: number | undefined },
  run: (connected: Connected) => Promise<Said>,
): Promise<number> {
  const endpoint = await readEndpoint(values, process.env);
  const json = values.json === true;
  const answers: JsonObject[] = [];
  const remote = new RemoteEngine(endpoint);
  const transport = json && jsonForm !== "own" ? noted(remote.transport, answers) : remote.transport;
  const engine: Engine = { name: remote.name, transport, [Symbol.asyncDispose]: () => remote[Symbol.asyncDispose]() };
  // A command line waits as long as the server takes.
  const client = new SandboxClient({ engine, requestTimeoutMs: Number.POSITIVE_INFINITY });
  try {
    const said = await run({ client, json, answers, hasKey: endpoint.apiKey !== undefined });
    if (typeof said === "number") return said;
    const { text, code } = typeof said === "string" ? { text: said, code: 0 } : said;
    await (json ? printJson(inForm(answers, jsonForm)) : print(text));
    return code;
  } catch (error) {
    throw explained(error, failureCode);
  } finally {
    remote.close();
  }
}

function inForm(answers: readonly JsonObject[], form: JsonForm | undefined): unknown {
  if (form === "all") return answers;
  const last = answers.at(-1) ?? {};
  return typeof form === "object" && form.list in last ? answers.flatMap((answer) => answer[form.list]) : last;
}

/** Notes the answers as REST would have given them: what the SDK makes of them is for programs in this process. */
function noted(transport: Transport, answers: JsonObject[]): Transport {
  const note = <Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): void => {
    answers.push(toJson(schema, message, { alwaysEmitImplicit: true }) as JsonObject);
  };
  return {
    async unary(...call) {
      const response = await transport.unary(...call);
      note(call[0].output, response.message);
      return response;
    },
    async stream(...call) {
      const response = await transport.stream(...call);
      async function* messages() {
        for await (const message of response.message) {
          note(call[0].output, message);
          yield message;
        }
      }
      return { ...response, message: messages() };
    },
  };
}

async function readEndpoint(values: ServerValues, environment: NodeJS.ProcessEnv): Promise<Endpoint> {
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
function chosen(...choice: Parameters<typeof chooseEndpoint>): Endpoint {
  try {
    return chooseEndpoint(...choice);
  } catch (error) {
    throw error instanceof InvalidConfigurationError ? new UsageError(printable(error.message)) : error;
  }
}

async function readCertificates(path: string): Promise<string> {
  return await readFile(path, "utf8").catch((error: Error) => {
    throw new UsageError(`cannot read --ca: ${printable(error.message)}`);
  });
}

const TRUST = "give the right ones with --ca FILE";

/** What to do about an error, by its code or its reason, for somebody at a command line: the server speaks to every client. */
const HINTS: Readonly<Record<string, string>> = {
  UNAUTHENTICATED: "put a key in AGENTFENSE_API_KEY; an administrator makes one with: agentfense key create",
  SANDBOX_NOT_RUNNING: "start it first: agentfense sandbox start ID",
  SANDBOX_PAUSED: "resume it first: agentfense sandbox resume ID",
  CODEBASE_IN_USE: "destroy those sandboxes first, or add --force",
  UPLOAD_MISMATCH: "a file changed while it was being sent; try again",
  VERSION_CONFLICT: "somebody else changed the codebase; look at: agentfense codebase versions ID",
  ROLE_FORBIDS: "ask for a key with another role",
  ECONNREFUSED: "is it running? start one with agentfense serve, or name another with --endpoint",
  DEPTH_ZERO_SELF_SIGNED_CERT: TRUST,
  SELF_SIGNED_CERT_IN_CHAIN: TRUST,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: TRUST,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TRUST,
};

/** The fields of requests that hold ids: where to find the ids that there are. */
const LISTS: readonly (readonly [start: string, hint: string])[] = [
  ["codebase_id is not", "the ids are in: agentfense codebase list"],
  ["sandbox_id is not", "the ids are in: agentfense sandbox list"],
  ["session_id is not", "the ids are in: agentfense session list SANDBOX"],
];

function explained(error: unknown, exitCode: number | undefined): unknown {
  if (!(error instanceof SandboxError)) return error;
  const { message, code, details, hint } = error;
  const known =
    HINTS[details.reason ?? ""] ?? HINTS[code] ?? hint ?? LISTS.find(([start]) => message.startsWith(start))?.[1];
  const isLost = code === "CONNECTION_FAILED" && known === undefined;
  return new CommandFailure(message, {
    exitCode,
    hint: isLost ? "is it running? if it speaks TLS, use https://" : known,
  });
}
