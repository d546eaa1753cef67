import { basename } from "node:path";
import type { CreateCodebaseRequest, SandboxClient } from "@agentfense/sdk";
import { UploadError } from "@agentfense/sdk";
import { type Selection, selectEntries, sendEntries } from "@agentfense/sdk/engine";
import { CommandFailure } from "../command-failure.ts";
import { print, printJson, warn } from "../output.ts";
import { Progress } from "../progress/progress.ts";
import { announcePolicy, findPolicy } from "../project-policy.ts";
import { printable } from "../terminal.ts";
import { counted, showSize } from "../wording.ts";
import { resolveDirectory } from "../workspace-directory.ts";

interface UploadRequest {
  readonly directory: string;
  readonly values: {
    readonly delete?: boolean | undefined;
    readonly message?: string | undefined;
    readonly "base-version"?: number | undefined;
    readonly ignore?: boolean | undefined;
    readonly "include-git"?: boolean | undefined;
    readonly "skip-unreadable"?: boolean | undefined;
  };
  readonly json: boolean;
}

/** Its name is that of the directory unless it has another. */
type NewCodebase = Omit<CreateCodebaseRequest, "name"> & { readonly name?: string };

/** Sends a directory to a codebase that is there, or to one that is made for it. Gives the exit code. */
export async function upload(
  client: SandboxClient,
  place: string | NewCodebase,
  { directory, values, json }: UploadRequest,
): Promise<number> {
  const top = await resolveDirectory(directory);
  const heedful = values.ignore !== false;
  const policy = await findPolicy(top, { policy: heedful });
  if (policy?.ignore !== undefined) announcePolicy(["ignore"]);
  const selection = await select(top, {
    ignoreFiles: heedful,
    ...(policy?.ignore !== undefined && { ignore: policy.ignore }),
    includeGit: values["include-git"] === true,
    skipUnreadable: values["skip-unreadable"] === true,
  });
  for (const sentence of selection.leftOut) warn(`left out: ${printable(sentence)}`);
  using progress = new Progress(process.stderr, "uploading");
  const uploaded = await inCodebase(
    client,
    typeof place === "string" ? place : { name: basename(top), ...place },
    async (id) => ({
      codebaseId: id,
      ...(await sendEntries(client, id, top, selection, {
        replaceAll: values.delete === true,
        message: values.message ?? "",
        baseVersion: values["base-version"] ?? 0,
        onProgress: ({ doneBytes, totalBytes }) => progress.show(doneBytes, totalBytes),
      })),
    }),
  );
  const { codebaseId, version, filesChanged, files, bytes, filesSent, bytesSent, leftOut } = uploaded;
  if (json) {
    await printJson({ codebaseId, version, filesChanged, files, bytes, filesSent, bytesSent, leftOut });
  } else {
    const sent = `${counted(filesSent, "file")} (${showSize(bytesSent)}) sent`;
    await print(`${codebaseId}  version ${version}, ${counted(files, "file")} (${showSize(bytes)}), ${sent}\n`);
  }
  return 0;
}

/** Reads the directory. What cannot be read is told in the words of the command line. */
async function select(top: string, options: Parameters<typeof selectEntries>[1]): Promise<Selection> {
  using progress = new Progress(process.stderr, "reading");
  try {
    return await selectEntries(top, {
      ...options,
      onProgress: ({ doneBytes, totalBytes }) => progress.show(doneBytes, totalBytes),
    });
  } catch (error) {
    if (!(error instanceof UploadError && error.unreadable.length > 0)) throw error;
    throw new CommandFailure(describeUnreadable(error.unreadable), { hint: "leave them out with --skip-unreadable" });
  }
}

const NAMED = 10;

function describeUnreadable(paths: readonly string[]): string {
  const named = paths.slice(0, NAMED).map((path) => `  ${printable(path)}`);
  const more = paths.length > NAMED ? [`  and ${paths.length - NAMED} more`] : [];
  return ["these cannot be read:", ...named, ...more].join("\n");
}

/** Works on the codebase asked for, or on a new one, which goes away again when the work fails. */
async function inCodebase<T>(
  client: SandboxClient,
  place: string | CreateCodebaseRequest,
  work: (codebaseId: string) => Promise<T>,
): Promise<T> {
  if (typeof place === "string") return await work(place);
  const { id } = await client.createCodebase(place);
  try {
    return await work(id);
  } catch (error) {
    await client.deleteCodebase(id).catch(() => warn(`the new codebase ${id} is left, empty`));
    throw error;
  }
}
