import { AsyncLocalStorage } from "node:async_hooks";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { askUntilExpiry, type Reply } from "../confirmation/ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "../confirmation/confirmation.ts";
import { requestDocument } from "../confirmation/terminal/document.ts";

/**
 * Who decides about calls that need somebody's agreement.
 *
 * | approval | the client can ask its user | it cannot |
 * | -------- | --------------------------- | --------- |
 * | ask      | the user                    | yes       |
 * | require  | the user                    | no        |
 * | always   | yes                         | yes       |
 * | never    | no                          | no        |
 *
 * `ask` lets pass what nobody can be asked about: what runs, runs in the sandbox, and hosts of MCP servers ask their users
 * before each call.
 */
export type McpApproval = "ask" | "require" | "always" | "never";

export const MCP_APPROVALS: readonly McpApproval[] = ["ask", "require", "always", "never"];

/** The call of a client on whose behalf something is done. */
interface ClientCall {
  readonly server: McpServer;
  readonly requestId: RequestId;
}

const COLUMNS = 100;
/** What cannot be shown in full is not agreed to. */
const MOST_SHOWN_CHARACTERS = 20_000;

/** Asks the user of an MCP client, by elicitation. */
export class ClientConfirmationService implements ConfirmationService {
  readonly #approval: McpApproval;
  readonly #calls = new AsyncLocalStorage<ClientCall>();

  constructor(approval: McpApproval = "ask") {
    this.#approval = approval;
  }

  /** What is asked for during this work is asked of this client, where it waits for the answer to its call. */
  during<Result>(call: ClientCall, work: () => Promise<Result>): Promise<Result> {
    return this.#calls.run(call, work);
  }

  request(
    request: ConfirmationRequest,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ConfirmationAnswer> {
    return askUntilExpiry(request, options, (signal) => this.#reply(request, signal));
  }

  async #reply(request: ConfirmationRequest, signal: AbortSignal): Promise<Reply> {
    if (this.#approval === "always" || this.#approval === "never") return ruled(this.#approval === "always");
    const call = this.#calls.getStore();
    const canAsk = call?.server.server.getClientCapabilities()?.elicitation?.form !== undefined;
    if (call === undefined || !canAsk) return ruled(this.#approval === "ask");
    return await elicit(request, call, signal);
  }
}

/** Nobody was asked. */
function ruled(isApproved: boolean): Reply {
  return { decision: isApproved ? "approved" : "denied", reviewer: "mcp approval setting" };
}

async function elicit(
  request: ConfirmationRequest,
  { server, requestId }: ClientCall,
  signal: AbortSignal,
): Promise<Reply> {
  const message = requestDocument(request, COLUMNS).join("\n");
  if (message.length > MOST_SHOWN_CHARACTERS) return { decision: "denied", comment: "it is too long to be shown" };
  const approve = { type: "boolean", title: "Allow it", description: "Let the agent do exactly this", default: false };
  try {
    const { action, content } = await server.server.elicitInput(
      {
        message,
        requestedSchema: {
          type: "object",
          properties: { approve: { ...approve, type: "boolean" } },
          required: ["approve"],
        },
      },
      { signal, timeout: Math.max(1, request.expiresAt.getTime() - Date.now()), relatedRequestId: requestId },
    );
    const isApproved = action === "accept" && content?.approve === true;
    return { decision: isApproved ? "approved" : "denied", reviewer: "mcp client" };
  } catch (error) {
    return { decision: "denied", comment: `asking failed: ${error instanceof Error ? error.message : error}` };
  }
}
