import type { Sandbox } from "@agentfense/sdk";
import type { BrowserDriver } from "../tools/tool.ts";
import type { SecurityMode } from "../types.ts";
import { sandboxWorld } from "../world/sandbox-world.ts";
import type { WorldContext, WorldInterface } from "../world/world.ts";
import { ClientConfirmationService } from "./client-confirmation.ts";

/** What the resources are made of. */
export type RecordedSandbox = Pick<Sandbox, "changes" | "diff" | "events">;

/** A world of yours, or the usual one on a sandbox of yours. Neither is closed with the server. */
export type McpSourceOptions =
  | {
      readonly world: WorldInterface;
      /** Whose changes and events are resources; absent: there are none but the world's own events. */
      readonly sandbox?: RecordedSandbox | undefined;
      /** What the world asks, if it is to ask the client's user. */
      readonly confirmation?: ClientConfirmationService | undefined;
      readonly context?: Omit<WorldContext, "signal"> | undefined;
      readonly afterCall?: AfterCall | undefined;
      readonly changesReachProject?: ChangesReachProject | undefined;
    }
  | {
      readonly world?: undefined;
      readonly sandbox: Sandbox;
      readonly browser?: BrowserDriver | undefined;
      /** Default: one that asks the client's user where the client can ask. */
      readonly confirmation?: ClientConfirmationService | undefined;
      /** Default STRICT. */
      readonly securityMode?: SecurityMode | undefined;
      readonly sessionId?: string | undefined;
      readonly afterCall?: AfterCall | undefined;
      readonly changesReachProject?: ChangesReachProject | undefined;
    };

/** Comes after each call that may have changed something, before it is answered; what it gives is added to the answer. */
type AfterCall = () => Promise<string | undefined>;

/** When what is changed in the sandbox is written to the project, as the client is told. Default: when somebody takes it over. */
export type ChangesReachProject = "when-taken-over" | "with-each-call" | "at-the-end";

/** What a server serves. */
export interface McpSource {
  readonly world: WorldInterface;
  readonly sandbox: RecordedSandbox | undefined;
  readonly confirmation: ClientConfirmationService | undefined;
  readonly context: Omit<WorldContext, "signal">;
  readonly afterCall: AfterCall | undefined;
  readonly changesReachProject: ChangesReachProject;
}

export function mcpSource(options: McpSourceOptions): McpSource {
  const { changesReachProject = "when-taken-over" } = options;
  if (options.world !== undefined) {
    const { world, sandbox, confirmation, context = {}, afterCall } = options;
    return { world, sandbox, confirmation, context, afterCall, changesReachProject };
  }
  const {
    sandbox,
    confirmation = new ClientConfirmationService(),
    browser,
    securityMode,
    sessionId,
    afterCall,
  } = options;
  // The browser that sees the sandbox's files is the one in the sandbox.
  return {
    world: sandboxWorld(sandbox, { browser, securityMode, sessionId, confirmation }),
    sandbox,
    confirmation,
    context: { needsFileAccess: true },
    afterCall,
    changesReachProject,
  };
}
