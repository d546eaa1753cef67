import { type HttpAccess, refuseStranger } from "./guard.ts";
import { refusal } from "./refusal.ts";
import { McpSessions, type SessionLimits } from "./sessions.ts";
import { type McpSourceOptions, mcpSource } from "./source.ts";

export type McpHttpOptions = McpSourceOptions &
  HttpAccess &
  SessionLimits & {
    /** Told what a caller is not told. Default: nobody. */
    readonly onError?: ((error: unknown) => void) | undefined;
  };

/** Answers requests, and with its disposal ends all sessions. */
export type McpHttpHandler = ((request: Request) => Promise<Response>) & AsyncDisposable;

/** MCP over streamable HTTP, for any server that has requests and responses of the web's kind. */
export function mcpHttpHandler(options: McpHttpOptions): McpHttpHandler {
  const source = mcpSource(options);
  const sessions = new McpSessions(options);
  const handle = async (request: Request): Promise<Response> => {
    try {
      return (
        refuseStranger(request, options) ?? (await sessions.handle(request, { owner: "", open: async () => source }))
      );
    } catch (error) {
      // That somebody went away is no failure of ours.
      if (!request.signal.aborted) options.onError?.(error);
      return refusal(500, "something failed inside");
    }
  };
  return Object.assign(handle, { [Symbol.asyncDispose]: () => sessions[Symbol.asyncDispose]() });
}
