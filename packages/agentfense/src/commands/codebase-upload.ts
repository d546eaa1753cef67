import { basename } from "node:path";
import { SandboxClient, UploadError } from "@agentfense/sdk";
import { type Selection, selectEntries, sendEntries } from "@agentfense/sdk/engine";
import { counted } from "../changes/table.ts";
import { CommandFailure, UsageError } from "../command.ts";
import { print, warn } from "../output.ts";
import { Progress } from "../progress/progress.ts";
import { announcePolicy, findPolicy } from "../project-policy.ts";
import { remoteCommand } from "../remote/command.ts";
import { chooseOwner } from "../remote/owner.ts";
import { printJson, showSize } from "../remote/show.ts";
import { parseVersion } from "../remote/version.ts";
import { printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

const HELP = `Usage: agentfense codebase upload [OPTIONS] DIR

Uploads DIR as one version of a codebase, all or nothing, and sends only what the server does not have yet. Modes, links
(as links, never followed) and empty directories are kept. What .gitignore and .agentfenseignore files in DIR and below
say is left out (the latter in the same form, and with the last word), and so is .git, and what .agentfense.yaml ignores.

  --codebase ID     into this one; without it a new codebase is made
  --name NAME       of a new codebase (default: the name of DIR)
  --owner OWNER     of a new codebase (default: the API key's; without a key, your name on this machine)
  --delete          remove from the codebase what DIR does not have
  --message TEXT    kept with the version
  --base-version N  only if the codebase is still at version N
  --no-ignore       take no notice of the ignore files
  --include-git     .git too
  --skip-unreadable leave out what cannot be read; otherwise that is an error
`;

const OPTIONS = {
  codebase: { type: "string" },
  name: { type: "string" },
  owner: { type: "string" },
  delete: { type: "boolean" },
  message: { type: "string" },
  "base-version": { type: "string" },
  ignore: { type: "boolean" },
  "include-git": { type: "boolean" },
  "skip-unreadable": { type: "boolean" },
} as const;

export const codebaseUpload = remoteCommand({
  name: "codebase upload",
  help: HELP,
  options: OPTIONS,
  takes: ["DIR"],
  async run({ server, values, given: [given], json }) {
    if (values.codebase !== undefined && (values.name !== undefined || values.owner !== undefined)) {
      throw new UsageError("--name and --owner are for a new codebase; leave them out with --codebase");
    }
    const top = await resolveDirectory(given);
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

    const place = {
      codebase: values.codebase,
      name: values.name ?? basename(top),
      owner: chooseOwner(server, values.owner),
    };
    const client = new SandboxClient({ engine: server.engine });
    using progress = new Progress(process.stderr, "uploading");
    const uploaded = await inCodebase(client, place, async (codebaseId) => ({
      codebaseId,
      ...(await sendEntries(client, codebaseId, top, selection, {
        replaceAll: values.delete === true,
        message: values.message ?? "",
        baseVersion: Number(parseVersion(values["base-version"], "--base-version")),
        onProgress: ({ doneBytes, totalBytes }) => progress.show(doneBytes, totalBytes),
      })),
    }));
    const { codebaseId, version, filesChanged, files, bytes, filesSent, bytesSent, leftOut } = uploaded;
    if (json) {
      await printJson({ codebaseId, version, filesChanged, files, bytes, filesSent, bytesSent, leftOut });
    } else {
      const sent = `${counted(filesSent, "file")} (${showSize(bytesSent)}) sent`;
      await print(`${codebaseId}  version ${version}, ${counted(files, "file")} (${showSize(bytes)}), ${sent}\n`);
    }
    return 0;
  },
});

/** Reads the directory. What cannot be read is told in the words of the command line. */
async function select(top: string, options: Parameters<typeof selectEntries>[1]): Promise<Selection> {
  using progress = new Progress(process.stderr, "reading");
  try {
    return await selectEntries(top, {
      ...options,
      onProgress: ({ doneBytes, totalBytes }) => progress.show(doneBytes, totalBytes),
    });
  } catch (error) {
    if (error instanceof UploadError && error.unreadable.length > 0) {
      throw new CommandFailure(describeUnreadable(error.unreadable), {
        hint: "leave them out with --skip-unreadable",
      });
    }
    throw error;
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
  { codebase, name, owner }: { readonly codebase: string | undefined; readonly name: string; readonly owner: string },
  work: (codebaseId: string) => Promise<T>,
): Promise<T> {
  if (codebase !== undefined) return await work(codebase);
  const { id } = await client.createCodebase({ name, ownerId: owner });
  try {
    return await work(id);
  } catch (error) {
    await client.deleteCodebase(id).catch(() => warn(`the new codebase ${id} is left, empty`));
    throw error;
  }
}
