import { type Version, VersionSchema } from "@agentfense/protocol/codebase";
import { paintMark } from "../changes/colours.ts";
import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { everyPage, PAGE_SIZE } from "../remote/pages.ts";
import type { Server } from "../remote/server.ts";
import { jsonOf, printJson, showSize, showTime } from "../remote/show.ts";
import { parseVersion } from "../remote/version.ts";
import { CHANGE_KINDS, ORIGINS, wordFor } from "../remote/words.ts";
import { printRecord, printTable } from "../table/table.ts";
import { paintFor, printable } from "../terminal.ts";

const HELP = `Usage: agentfense codebase versions [OPTIONS] CODEBASE [VERSION]

The versions of a codebase, newest first; or one of them with what it changed, and whose newer work it replaced. ! behind
a letter marks what a machine may run or trust unasked.
`;

export const codebaseVersions = remoteCommand({
  name: "codebase versions",
  help: HELP,
  takes: ["CODEBASE"],
  more: { name: "VERSION", atMost: 1 },
  async run({ server, given: [codebaseId], more: [number], json }) {
    if (number === undefined) await listVersions(server, codebaseId, json);
    else {
      const version = parseVersion(number, "codebase versions");
      await showVersion(await server.codebases.getVersion({ codebaseId, version }), json);
    }
    return 0;
  },
});

async function listVersions(server: Server, codebaseId: string, json: boolean): Promise<void> {
  const versions = await everyPage(async (pageToken) => {
    const { versions: items, nextPageToken } = await server.codebases.listVersions({
      codebaseId,
      pageSize: PAGE_SIZE,
      pageToken,
    });
    return { items, nextPageToken };
  });
  if (json) return printJson(versions.map((version) => jsonOf(VersionSchema, version)));
  await printTable(
    ["VERSION", "TIME", "ORIGIN", "CHANGES", "CONFLICTS", "FILES", "SIZE", "SANDBOX", "MESSAGE"],
    versions.map((version) => [
      String(version.version),
      showTime(version.createdAt),
      wordFor(ORIGINS, version.origin),
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

async function showVersion(version: Version, json: boolean): Promise<void> {
  if (json) return printJson(jsonOf(VersionSchema, version));
  await printRecord([
    ["version", String(version.version)],
    ["time", showTime(version.createdAt)],
    ["origin", wordFor(ORIGINS, version.origin)],
    ["sandbox", version.sandboxId],
    ["message", version.message],
    ["files", String(version.fileCount)],
    ["size", showSize(version.size)],
  ]);
  const paint = paintFor(process.stdout, process.env);
  for (const { kind, path, size, sensitive } of version.changes) {
    const letter = wordFor(CHANGE_KINDS, kind).charAt(0).toUpperCase();
    await print(`${paintMark(letter, sensitive ? "!" : " ", paint)} ${printable(path)}  ${showSize(size)}\n`);
  }
  for (const { path, replacedVersion, replacedSandboxId } of version.conflicts) {
    const whose = replacedSandboxId === "" ? "" : ` of sandbox ${printable(replacedSandboxId)}`;
    await print(`!  ${printable(path)}  replaced version ${replacedVersion}${whose}\n`);
  }
}
