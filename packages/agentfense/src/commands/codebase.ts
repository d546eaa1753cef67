import type { BatchResult, Codebase, Version } from "@agentfense/sdk";
import { paintMark } from "../changes/colours.ts";
import { UsageError } from "../command-failure.ts";
import { option } from "../option.ts";
import { ownerOf, serverCommand } from "../remote/command.ts";
import { filesTable, OUTPUT_FILE, writeTo } from "../remote/files.ts";
import { recordText, tableText } from "../table.ts";
import { paintFor, printable } from "../terminal.ts";
import { counted, KIND_LETTERS, showSize, showTime } from "../wording.ts";

const RECURSIVE = option({ name: "recursive", short: "r", about: "with all that is below" });

/** The number of a version. */
export function versionNumber(text: string, spelling: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new UsageError(`${spelling} takes the number of a version, not ${JSON.stringify(text)}`);
}

const AT_VERSION = option({ name: "version", value: "N", about: "as it was at version N", parse: versionNumber });

function owner<const About extends string>(about: About) {
  return option({ name: "owner", value: "OWNER", about });
}

const create = serverCommand({
  name: "codebase create",
  summary: "make an empty codebase",
  about: "Makes an empty codebase. To make one from a directory: agentfense codebase upload DIR.",
  options: { "": [owner("whose it is (default: the API key's owner; without a key, your name on this machine)")] },
  takes: ["NAME"],
  run: async ({ client, values, given: [name], hasKey }) =>
    codebaseText(await client.createCodebase({ name, ownerId: await ownerOf(hasKey, values.owner) })),
});

const upload = serverCommand({
  name: "codebase upload",
  summary: "upload a directory; only what the server lacks is sent",
  about: `Uploads DIR as one version of a codebase, all or nothing, and sends only what the server does not have yet. Modes, links
(as links, never followed) and empty directories are kept. What .gitignore and .agentfenseignore files in DIR and below
say is left out (the latter in the same form, and with the last word), and so is .git, and what .agentfense.yaml ignores.`,
  options: {
    "": [
      option({ name: "codebase", value: "ID", about: "into this one; without it a new codebase is made" }),
      option({ name: "name", value: "NAME", about: "of a new codebase (default: the name of DIR)" }),
      owner("of a new codebase (default: the API key's; without a key, your name on this machine)"),
      option({ name: "delete", about: "remove from the codebase what DIR does not have" }),
      option({ name: "message", value: "TEXT", about: "kept with the version" }),
      option({
        name: "base-version",
        value: "N",
        about: "only if the codebase is still at version N",
        parse: versionNumber,
      }),
      option({ name: "ignore", isOn: true, about: "take no notice of the ignore files" }),
      option({ name: "include-git", about: ".git too" }),
      option({ name: "skip-unreadable", about: "leave out what cannot be read; otherwise that is an error" }),
    ],
  },
  takes: ["DIR"],
  completes: "directory",
  jsonForm: "own",
  async run({ client, values, given: [directory], json, hasKey }) {
    const { codebase, name, owner: given } = values;
    if (codebase !== undefined && (name !== undefined || given !== undefined)) {
      throw new UsageError("--name and --owner are for a new codebase; leave them out with --codebase");
    }
    const place = codebase ?? { ...(name !== undefined && { name }), ownerId: await ownerOf(hasKey, given) };
    return await (await import("../remote/upload.ts")).upload(client, place, { directory, values, json });
  },
});

const list = serverCommand({
  name: "codebase list",
  summary: "codebases with their sizes and versions",
  about: "The codebases that you may see.",
  options: { "": [owner("only this owner's")] },
  jsonForm: { list: "codebases" },
  async run({ client, values }) {
    const codebases = await client.listCodebases({ ownerId: values.owner, pageSize: 1000 }).toArray();
    return tableText(
      ["ID", "NAME", "OWNER", "VERSION", "FILES", "SIZE", "UPDATED"],
      codebases.map((codebase) => [
        codebase.id,
        codebase.name,
        codebase.ownerId,
        String(codebase.version),
        String(codebase.fileCount),
        showSize(codebase.size),
        showTime(codebase.updatedAt),
      ]),
      { right: ["VERSION", "FILES", "SIZE"] },
    );
  },
});

const show = serverCommand({
  name: "codebase show",
  summary: "one codebase",
  about: "Name, owner, size and version of a codebase.",
  takes: ["CODEBASE"],
  run: async ({ client, given: [id] }) => codebaseText(await client.getCodebase(id)),
});

const files = serverCommand({
  name: "codebase files",
  summary: "files of a codebase",
  about: "The files of a codebase, or of a directory of it.",
  options: { "": [RECURSIVE, AT_VERSION] },
  takes: ["CODEBASE", "[DIRECTORY]"],
  jsonForm: { list: "files" },
  async run({ client, values: { recursive, version }, given: [id, path] }) {
    return filesTable(await client.listFiles(id, { path, recursive, version }).toArray());
  },
});

const download = serverCommand({
  name: "codebase download",
  summary: "a file of a codebase, or all of it as an archive",
  usage: ["[OPTIONS] CODEBASE PATH", "--archive [OPTIONS] CODEBASE [DIRECTORY] | tar -x"],
  about: "One file of a codebase, or a directory of it (by default all of it) as a tar archive.",
  options: {
    "": [option({ name: "archive", about: "a tar archive of a directory instead of a file" }), AT_VERSION, OUTPUT_FILE],
  },
  takes: ["CODEBASE", "[PATH]"],
  jsonForm: "own",
  async run({ client, values: { archive, version, output }, given: [id, path] }) {
    if (archive) {
      if (output === undefined && process.stdout.isTTY) {
        throw new UsageError("an archive goes to a file (--output) or a pipe, not to a terminal");
      }
      return await writeTo(output, client.downloadArchive(id, { path, version }));
    }
    if (path === undefined) throw new UsageError("codebase download takes a path, or --archive for all of it");
    return await writeTo(output, client.downloadStream(id, path, { version }));
  },
});

const versions = serverCommand({
  name: "codebase versions",
  summary: "versions of a codebase, and what each changed",
  about: `The versions of a codebase, newest first; or one of them with what it changed, and whose newer work it replaced. ! behind
a letter marks what a machine may run or trust unasked.`,
  takes: ["CODEBASE", "[VERSION]"],
  jsonForm: { list: "versions" },
  async run({ client, given: [id, number] }) {
    if (number === undefined) return versionsTable(await client.listVersions(id, { pageSize: 1000 }).toArray());
    return versionText(await client.getVersion(id, versionNumber(number, "codebase versions")));
  },
});

const rollback = serverCommand({
  name: "codebase rollback",
  summary: "a new version with the content of an old one",
  about: "Makes a new version with the content of an old one. Nothing is lost: the versions in between stay.",
  takes: ["CODEBASE", "VERSION"],
  run: async ({ client, given: [id, number] }) =>
    newVersion(await client.rollback(id, versionNumber(number, "codebase rollback"))),
});

const rename = serverCommand({
  name: "codebase rename",
  summary: "rename a file of a codebase",
  about: "Renames a file or a directory of a codebase.",
  takes: ["CODEBASE", "FROM", "TO"],
  run: async ({ client, given: [id, from, to] }) => newVersion(await client.renameFile(id, from, to)),
});

const rm = serverCommand({
  name: "codebase rm",
  summary: "delete a file of a codebase",
  about: "Deletes a file of a codebase.",
  options: { "": [option({ ...RECURSIVE, about: "a directory with all that is below" })] },
  takes: ["CODEBASE", "PATH"],
  run: async ({ client, values: { recursive = false }, given: [id, path] }) =>
    newVersion(await client.deleteFile(id, path, { recursive })),
});

const remove = serverCommand({
  name: "codebase delete",
  summary: "delete a codebase with all its versions",
  about: "Deletes a codebase with all its versions. Refused while sandboxes use it.",
  options: { "": [option({ name: "force", about: "destroy those sandboxes too" })] },
  takes: ["CODEBASE"],
  async run({ client, values: { force = false }, given: [id] }) {
    await client.deleteCodebase(id, { force });
    return `deleted ${printable(id)}\n`;
  },
});

export const CODEBASE = [create, upload, list, show, files, download, versions, rollback, rename, rm, remove];

function codebaseText(codebase: Codebase): string {
  return recordText([
    ["id", codebase.id],
    ["name", codebase.name],
    ["owner", codebase.ownerId],
    ["files", String(codebase.fileCount)],
    ["size", showSize(codebase.size)],
    ["version", String(codebase.version)],
    ["created", showTime(codebase.createdAt)],
    ["updated", showTime(codebase.updatedAt)],
  ]);
}

function newVersion({ version, filesChanged }: Pick<BatchResult, "version" | "filesChanged">): string {
  return `version ${version}, ${counted(filesChanged, "change")}\n`;
}

function versionsTable(all: readonly Version[]): string {
  return tableText(
    ["VERSION", "TIME", "ORIGIN", "CHANGES", "CONFLICTS", "FILES", "SIZE", "SANDBOX", "MESSAGE"],
    all.map((version) => [
      String(version.version),
      showTime(version.createdAt),
      version.origin,
      String(version.filesChanged),
      String(version.conflicts.length),
      String(version.fileCount),
      showSize(version.size),
      version.sandboxId,
      version.message,
    ]),
    { right: ["VERSION", "CHANGES", "CONFLICTS", "FILES", "SIZE"] },
  );
}

function versionText(version: Version): string {
  const facts = recordText([
    ["version", String(version.version)],
    ["time", showTime(version.createdAt)],
    ["origin", version.origin],
    ["sandbox", version.sandboxId],
    ["message", version.message],
    ["files", String(version.fileCount)],
    ["size", showSize(version.size)],
  ]);
  const paint = paintFor(process.stdout, process.env);
  const changes = version.changes.map(
    ({ kind, path, size, sensitive }) =>
      `${paintMark(KIND_LETTERS[kind], sensitive ? "!" : " ", paint)} ${printable(path)}  ${showSize(size)}\n`,
  );
  const conflicts = version.conflicts.map(({ path, replacedVersion, replacedSandboxId }) => {
    const whose = replacedSandboxId === "" ? "" : ` of sandbox ${printable(replacedSandboxId)}`;
    return `!  ${printable(path)}  replaced version ${replacedVersion}${whose}\n`;
  });
  return [facts, ...changes, ...conflicts].join("");
}
