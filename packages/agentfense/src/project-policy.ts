import { POLICY_FILE, type ProjectPolicy, ProjectPolicyError, readProjectPolicy } from "@agentfense/sdk/project";
import { UsageError } from "./command-failure.ts";
import { warn } from "./output.ts";

/** The policy of the project in a directory, unless it is to be ignored. A mistake in it is a usage error. */
export async function findPolicy(
  directory: string,
  { policy }: { readonly policy?: boolean | undefined },
): Promise<ProjectPolicy | undefined> {
  if (policy === false) return undefined;
  return await explainingPolicy(() => readProjectPolicy(directory));
}

/** Runs what may find the policy of a project unusable; `hint` is what to do then. */
export async function explainingPolicy<T>(work: () => T | Promise<T>, hint?: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ProjectPolicyError)) throw error;
    throw new UsageError(error.message, {
      hint: hint ?? error.hint ?? "correct it, or leave it aside with --no-policy",
    });
  }
}

/** Says what was taken from the project and not from the command line. */
export function announcePolicy(taken: readonly string[]): void {
  if (taken.length > 0) warn(`${listed(taken)} from ${POLICY_FILE}`);
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
