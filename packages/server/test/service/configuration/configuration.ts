import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { ConfigurationError, type ConfigurationFlag } from "../../../src/service/configuration/keys.ts";
import { loadConfiguration } from "../../../src/service/configuration/load.ts";

interface Given {
  readonly yaml?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly ConfigurationFlag[];
}

/** Loads a configuration whose file, if there is one, is called server.yaml. */
export async function load({ yaml, env = {}, flags = [] }: Given) {
  if (yaml === undefined) return { ...(await loadConfiguration({ env, flags })), directory: "" };
  const directory = await mkdtemp(join(tmpdir(), "agentfense-configuration-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "server.yaml");
  await writeFile(file, yaml);
  return { ...(await loadConfiguration({ file, env, flags })), directory };
}

/** What is wrong with it, one problem a line. */
export async function problemsOf(given: Given): Promise<readonly string[]> {
  try {
    await load(given);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}
