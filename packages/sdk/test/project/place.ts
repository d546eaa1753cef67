import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A directory that lasts as long as the test, with a policy file if one is given. */
export async function project(policy?: string | Uint8Array): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-project-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  if (policy !== undefined) await writeFile(join(directory, ".agentfense.yaml"), policy);
  return directory;
}
