import { realpath, stat } from "node:fs/promises";
import { basename } from "node:path";
import { PresetError, RuleError } from "@agentfense/permission";
import { InvalidConfigurationError } from "../../errors.ts";
import { type MembersOf, requireKnownMembers } from "../../model/known-members.ts";
import type { SandboxOptions, UploadDirectoryOptions } from "../../model/options.ts";
import { type ProjectPolicy, readProjectPolicy, withProjectPolicy } from "../../project/index.ts";
import { selectEntries } from "../../upload/select.ts";
import { sendEntries } from "../../upload/upload.ts";
import { LocalCopy } from "../local-copy/local-copy.ts";
import { LocalDirectory } from "../local-copy/local-directory.ts";
import { OPENING, type OpeningKit, type OpenOptions } from "./kit.ts";
import { open, ownCodebase, type PrepareCodebase } from "./open-sandbox.ts";

/** How a directory becomes a codebase, where it has to be uploaded. */
export type UploadChoice = Pick<
  UploadDirectoryOptions,
  "ignoreFiles" | "ignore" | "includeGit" | "skipUnreadable" | "onProgress"
>;

export interface FromLocalOptions extends OpenOptions, UploadChoice {
  /** False: what `.agentfense.yaml` in the directory says does not count. */
  readonly policy?: false | undefined;
}

export const FROM_LOCAL: MembersOf<FromLocalOptions> = {
  ...OPENING,
  ...{ ignoreFiles: true, ignore: true, includeGit: true, skipUnreadable: true, onProgress: true, policy: true },
};

/** A sandbox on a directory of this machine. */
export async function openLocal<S>(kit: OpeningKit<S>, directory: string, options: FromLocalOptions): Promise<S> {
  requireKnownMembers(options, FROM_LOCAL, "the options of fromLocal");
  return await open(kit, options, await directoryCodebase(directory, options));
}

/** The directory itself where the engine can take it, else a copy of it. */
export async function directoryCodebase(directory: string, options: FromLocalOptions): Promise<PrepareCodebase> {
  const top = await realDirectory(directory);
  const policy = options.policy === false ? undefined : await readProjectPolicy(top);
  const sandbox = sandboxOptions(options, policy);
  const ignore = [...(policy?.ignore ?? []), ...(options.ignore ?? [])];
  const name = options.name ?? (basename(top) || "root");
  const { signal, onProgress } = options;
  return async (connection, undo) => {
    const { client, openDirectory } = connection;
    if (openDirectory !== undefined) {
      const codebaseId = await openDirectory(top, { name });
      undo.add(() => client.deleteCodebase(codebaseId, { force: true }));
      return { codebaseId, isOwn: true, sandbox };
    }
    const selection = await selectEntries(top, { ...options, ignore });
    const codebaseId = await ownCodebase(connection, undo, { ...options, name });
    await sendEntries(client, codebaseId, top, selection, { onProgress, signal });
    const copy = new LocalCopy(
      top,
      selection.entries.map((entry) => [entry.path, entry]),
    );
    const localDirectory = new LocalDirectory(client, codebaseId, copy);
    return { codebaseId, isOwn: true, localDirectory, sandbox };
  };
}

/** No part of it is a link: what is written there later must not depend on where one leads by then. */
async function realDirectory(directory: string): Promise<string> {
  try {
    const top = await realpath(directory);
    if ((await stat(top)).isDirectory()) return top;
  } catch (error) {
    throw unusable(directory, `cannot be opened (${(error as NodeJS.ErrnoException).code ?? error})`, error);
  }
  throw unusable(directory, "is not a directory");
}

function unusable(directory: string, problem: string, cause?: unknown): InvalidConfigurationError {
  return new InvalidConfigurationError(`${directory} ${problem}`, { code: "INVALID_ARGUMENT", cause });
}

/** Changes wait until they are applied, in the process and on a server. */
function sandboxOptions(options: FromLocalOptions, policy: ProjectPolicy | undefined): SandboxOptions {
  try {
    const taken = withProjectPolicy(options, policy);
    return { ...taken, sync: taken.sync ?? "manual" };
  } catch (error) {
    if (!(error instanceof PresetError || error instanceof RuleError)) throw error;
    throw new InvalidConfigurationError(error.message, { code: "INVALID_ARGUMENT", cause: error });
  }
}
