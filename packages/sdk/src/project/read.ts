import { Buffer } from "node:buffer";
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { type AgentProfile, ContentError, type PolicyContent, readAgentProfile, readPolicyContent } from "./schema.ts";
import { ProjectPolicyError, parseYaml, YamlError, type YamlText } from "./yaml.ts";

/** The policy file of a project, in its top directory. */
export const POLICY_FILE = ".agentfense.yaml";

/** Spellings that somebody will try; a policy that is silently not read is a hole. */
const MISSPELT = [".agentfense.yml", "agentfense.yaml", "agentfense.yml"];

export interface ProjectPolicy extends PolicyContent {
  /** Where the file is: the directory as it was given, and the name. */
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

/** No rules of a person are longer. */
const LARGEST_FILE = 1_048_576;

/** A file that is not what was expected; other failures are the system's own errors. */
export class TextFileError extends Error {
  override readonly name = "TextFileError";
}

/** The text of a file that somebody named: a link and a pipe are as good as a file. */
export async function readTextFile(path: string): Promise<string> {
  await using file = await open(path, "r");
  return await readText(file);
}

/** The text of a file that was merely found: it has to be one, and no link is followed to it. */
export async function readFoundTextFile(path: string): Promise<string> {
  requireFile(await lstat(path));
  // Should it be swapped after the look: a link fails to open, and a pipe does not make us wait.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  await using file = await open(path, flags);
  requireFile(await file.stat());
  return await readText(file);
}

function requireFile(status: Stats): void {
  if (status.isSymbolicLink()) throw new TextFileError("is a symbolic link, and those are not followed");
  if (!status.isFile()) throw new TextFileError("is not a file");
}

async function readText(file: FileHandle): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  // A file can grow while it is read, so that its size promises nothing.
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(65_536), 0, 65_536, null);
    if (bytesRead === 0) break;
    length += bytesRead;
    if (length > LARGEST_FILE) throw new TextFileError("is larger than 1 MiB");
    pieces.push(buffer.subarray(0, bytesRead));
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces));
  } catch (error) {
    throw new TextFileError("is not UTF-8 text", { cause: error });
  }
}
