import { VersionSchema } from "@agentfense/protocol/codebase";
import { counted } from "../changes/table.ts";
import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { jsonOf, printJson } from "../remote/show.ts";
import { parseVersion } from "../remote/version.ts";

const HELP = `Usage: agentfense codebase rollback [OPTIONS] CODEBASE VERSION

Makes a new version with the content of an old one. Nothing is lost: the versions in between stay.
`;

export const codebaseRollback = remoteCommand({
  name: "codebase rollback",
  help: HELP,
  takes: ["CODEBASE", "VERSION"],
  async run({ server, given: [codebaseId, number], json }) {
    const version = await server.codebases.rollback({ codebaseId, version: parseVersion(number, "codebase rollback") });
    if (json) await printJson(jsonOf(VersionSchema, version));
    else await print(`version ${version.version}, ${counted(version.filesChanged, "change")}\n`);
    return 0;
  },
});
