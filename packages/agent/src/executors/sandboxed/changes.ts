import type { ApplyOutcome, Sandbox } from "@agentfense/sdk";
import { ExecutorError } from "../../errors.ts";

const NOTES_AT_MOST = 20;

/**
 * Writes what a sandbox changed into its directory, and undoes what stays behind: afterwards the sandbox shows what the
 * directory has. Gives a line for each change that was undone, with the reason.
 */
export async function applyChanges(sandbox: Sandbox): Promise<readonly string[]> {
  const left = (await applied(sandbox)).filter((outcome) => !outcome.applied);
  if (left.length === 0) return [];
  await sandbox.discard();
  const notes = left
    .slice(0, NOTES_AT_MOST)
    .map(({ change, reason }) => `${JSON.stringify(change.path)} was not written into the workspace: ${reason}`);
  return left.length > NOTES_AT_MOST ? [...notes, `and ${left.length - NOTES_AT_MOST} more were not`] : notes;
}

async function applied(sandbox: Sandbox): Promise<readonly ApplyOutcome[]> {
  try {
    return (await sandbox.apply()).outcomes;
  } catch (error) {
    const message = "the code ran, but what it changed could not be written into the workspace";
    throw new ExecutorError("INTERNAL", message, { cause: error });
  }
}
