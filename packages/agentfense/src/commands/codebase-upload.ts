import { basename } from "node:path";
import { counted } from "../changes/table.ts";
import { UsageError } from "../command.ts";
import { print, warn } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { chooseOwner } from "../remote/owner.ts";
import type { Server } from "../remote/server.ts";
import { printJson, showSize } from "../remote/show.ts";
import { parseVersion } from "../remote/version.ts";
import { printable } from "../terminal.ts";
import { selectEntries, sendEntries } from "../upload/upload.ts";
import { resolveDirectory } from "../workspace-directory.ts";

const HELP = `Usage: agentfense codebase upload [OPTIONS] DIR

Uploads DIR as one version of a codebase, all or nothing, and sends only what the server does not have yet. Modes, links
(as links, never followed) and empty directories are kept. What .gitignore and .agentfenseignore files in DIR and below
say is left out (the latter in the same form, and with the last word), and so is .git.

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
    const selection = await selectEntries(top, {
      ignoreFiles: values.ignore !== false,
      includeGit: values["include-git"] === true,
      skipUnreadable: values["skip-unreadable"] === true,
    });
    for (const sentence of selection.leftOut) warn(`left out: ${printable(sentence)}`);

    const place = {
      codebase: values.codebase,
      name: values.name ?? basename(top),
      owner: chooseOwner(server, values.owner),
    };
    const { result, filesSent, bytesSent } = await inCodebase(server, place, (codebaseId) =>
      sendEntries(server, top, selection, {
        codebaseId,
        replaceAll: values.delete === true,
        message: values.message ?? "",
        baseVersion: parseVersion(values["base-version"], "--base-version"),
      }),
    );
    const files = selection.entries.filter(({ kind }) => kind !== "directory").length;
    if (json) {
      const { codebaseId, version, filesChanged } = result;
      const { bytes, leftOut } = selection;
      await printJson({
        codebaseId,
        version: Number(version),
        filesChanged,
        files,
        bytes,
        filesSent,
        bytesSent,
        leftOut,
      });
    } else {
      const sent = `${counted(filesSent, "file")} (${showSize(bytesSent)}) sent`;
      await print(
        `${result.codebaseId}  version ${result.version}, ${counted(files, "file")} (${showSize(selection.bytes)}), ${sent}\n`,
      );
    }
    return 0;
  },
});

/** Works on the codebase asked for, or on a new one, which goes away again when the work fails. */
async function inCodebase<T>(
  server: Server,
  { codebase, name, owner }: { readonly codebase: string | undefined; readonly name: string; readonly owner: string },
  work: (codebaseId: string) => Promise<T>,
): Promise<T> {
  if (codebase !== undefined) return await work(codebase);
  const { id } = await server.codebases.createCodebase({ name, ownerId: owner });
  try {
    return await work(id);
  } catch (error) {
    await server.codebases
      .deleteCodebase({ codebaseId: id })
      .catch(() => warn(`the new codebase ${id} is left, empty`));
    throw error;
  }
}
