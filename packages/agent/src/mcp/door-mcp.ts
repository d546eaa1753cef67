import type { DoorCall } from "@agentfense/doors";
import type { Sandbox } from "@agentfense/sdk";
import { ClientConfirmationService, type McpApproval } from "./client-confirmation.ts";
import { McpSessions, type SessionLimits } from "./sessions.ts";
import { mcpSource } from "./source.ts";

/** Answers MCP requests for sandboxes of a server, and with its disposal ends all sessions. */
export type DoorMcp = ((sandbox: Sandbox, request: Request, call: DoorCall) => Promise<Response>) & AsyncDisposable;

const LIMITS: SessionLimits = { maxSessions: 512, maxSessionsOfOne: 16 };

/**
 * MCP for a door of a server: who calls, and whether he may know of the sandbox, was found out for this request. A session is
 * for one sandbox and one caller; what it does is done as him.
 */
export function doorMcp({
  approval,
  ...limits
}: SessionLimits & { readonly approval?: McpApproval | undefined } = {}): DoorMcp {
  const sessions = new McpSessions({ ...LIMITS, ...limits });
  const toRunUnasked = "the server's operator sets server.aio_approve to never";
  const answer = async (sandbox: Sandbox, request: Request, { caller }: DoorCall): Promise<Response> => {
    const owner = JSON.stringify([sandbox.id, caller.ownerId ?? null, caller.role, caller.keyId ?? null]);
    const confirmation = new ClientConfirmationService(approval, { toRunUnasked });
    const open = async () => mcpSource({ sandbox, confirmation });
    return await sessions.handle(request, { owner, open });
  };
  return Object.assign(answer, { [Symbol.asyncDispose]: () => sessions[Symbol.asyncDispose]() });
}
