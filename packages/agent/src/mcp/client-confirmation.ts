import { AsyncLocalStorage } from "node:async_hooks";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { askUntilExpiry, type Reply } from "../confirmation/ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "../confirmation/confirmation.ts";
import { requestDocument } from "../confirmation/terminal/document.ts";

/**
 * Who decides about calls that need somebody's agreement.
 *
 * | approval | the client can ask its user (elicitation) | it cannot  |
 * | -------- | ----------------------------------------- | ---------- |
 * | ask      | the user                                  | refused    |
 * | never    | nobody: it is done                        | it is done |
 */
export type McpApproval = "ask" | "never";

export const MCP_APPROVALS: readonly McpApproval[] = ["ask", "never"];

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
  readonly #toRunUnasked: string;
  readonly #calls = new AsyncLocalStorage<ClientCall>();

  /** `toRunUnasked`: what whoever runs this server does to set "never", for those whose client cannot ask. */
  constructor(
    approval: McpApproval = "ask",
    { toRunUnasked = 'make the server with new ClientConfirmationService("never")' }: { toRunUnasked?: string } = {},
  ) {
    this.#approval = approval;
    this.#toRunUnasked = toRunUnasked;
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
    if (this.#approval === "never") return { decision: "approved", reviewer: SETTING };
    const call = this.#calls.getStore();
    const canAsk = call?.server.server.getClientCapabilities()?.elicitation?.form !== undefined;
    if (call !== undefined && canAsk) return await elicit(request, call, signal);
    const comment = `this MCP client cannot ask its user; to have such calls run unasked, ${this.#toRunUnasked}`;
    return { decision: "denied", reviewer: SETTING, comment };
  }
}

/** Nobody was asked. */
const SETTING = "mcp approval setting";

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
