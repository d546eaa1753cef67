import { type ApplyOutcome, SandboxError } from "@agentfense/sdk";
import type { Sandbox } from "../sandbox.ts";

/** Writes what was changed into the directory, and gives a remark for the agent on what stayed behind. */
export async function writeThrough(
  sandbox: Sandbox,
  options: { readonly holdExecutables: boolean },
  tell: (outcomes: readonly ApplyOutcome[]) => void,
): Promise<string | undefined> {
  try {
    const { outcomes } = await sandbox.apply(options);
    tell(outcomes.filter(({ applied, sensitive, conflict }) => !applied || sensitive || conflict));
    const behind = outcomes.filter(({ applied }) => !applied);
    if (behind.length === 0) return undefined;
    return behind.map(({ change, reason }) => `[not written to the project: ${change.path}: ${reason}]`).join("\n");
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    return `[not written to the project: ${error.message}]`;
  }
}
