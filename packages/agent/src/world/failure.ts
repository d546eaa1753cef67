import { SandboxError } from "@agentfense/sdk";
import { AgentError } from "../errors.ts";

/** What to tell a model of a failure; undefined for what only an operator can make sense of. */
export function tellable(error: unknown): string | undefined {
  if (!(error instanceof AgentError || error instanceof SandboxError)) return undefined;
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}
