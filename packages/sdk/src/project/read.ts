import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { ProjectPolicyError, YamlError } from "./errors.ts";
import { type AgentProfile, ContentError, type PolicyContent, readAgentProfile, readPolicyContent } from "./schema.ts";
import { readFoundTextFile, readTextFile, TextFileError } from "./text-file.ts";
import { parseYaml, type YamlText } from "./yaml.ts";

/** The policy file of a project, in its top directory. */
export const POLICY_FILE = ".agentfense.yaml";

/** Spellings that somebody will try; a policy that is silently not read is a hole. */
const MISSPELT = [".agentfense.yml", "agentfense.yaml", "agentfense.yml"];

export interface ProjectPolicy extends PolicyContent {
  /** Of the file: the directory as it was given, and the name. */
  readonly path: string;
}

/**
 * What `.agentfense.yaml` in a directory says; nothing when there is none.
 *
 * It may come from strangers: no link is followed to it, it has at most 1 MiB, and what is not understood is an error (a
 * `ProjectPolicyError` with file, line and column), never skipped.
 */
export async function readProjectPolicy(directory: string): Promise<ProjectPolicy | undefined> {
  const path = join(directory, POLICY_FILE);
  const text = await readFoundTextFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    const problem = error instanceof TextFileError ? error.message : `cannot be read (${error.code ?? error.message})`;
    throw new ProjectPolicyError(path, problem, { cause: error });
  });
  if (text !== undefined) return await parseProjectPolicy(text, path);
  await refuseMisspelt(directory);
  return undefined;
}

/** The same for a text that is, or will be, in the file `path`. */
export async function parseProjectPolicy(text: string, path: string): Promise<ProjectPolicy> {
  return { ...(await parseContent(text, path, readPolicyContent)), path };
}

/** A coding agent's profile in a file of its own, which the user names: he may have linked it. */
export async function readAgentProfileFile(path: string): Promise<AgentProfile> {
  const text = await readTextFile(path).catch((error: NodeJS.ErrnoException) => {
    const problem = error instanceof TextFileError ? error.message : `cannot be read (${error.code ?? error.message})`;
    throw new ProjectPolicyError(path, problem, { cause: error });
  });
  return await parseContent(text, path, (value) => readAgentProfile(value));
}

async function parseContent<Content>(text: string, path: string, read: (value: unknown) => Content): Promise<Content> {
  let yaml: YamlText | undefined;
  try {
    yaml = await parseYaml(text);
    return read(yaml.value);
  } catch (error) {
    if (error instanceof YamlError) {
      throw new ProjectPolicyError(path, error.message, { line: error.line, column: error.column, cause: error });
    }
    if (error instanceof ContentError && yaml !== undefined) {
      throw new ProjectPolicyError(path, error.message, { ...yaml.placeOf(error.at, error.part), cause: error });
    }
    throw error;
  }
}

async function refuseMisspelt(directory: string): Promise<void> {
  for (const name of MISSPELT) {
    const found = await lstat(join(directory, name)).catch(() => undefined);
    if (found?.isFile()) {
      throw new ProjectPolicyError(join(directory, name), `is not read; the file is called ${POLICY_FILE}`, {
        hint: `rename it to ${POLICY_FILE}`,
      });
    }
  }
}
