import { UsageError } from "../command.ts";
import { remoteCommand } from "../remote/command.ts";
import { writeTo } from "../remote/destination.ts";
import { parseVersion } from "../remote/version.ts";

const HELP = `Usage: agentfense codebase download [OPTIONS] CODEBASE PATH
       agentfense codebase download --archive [OPTIONS] CODEBASE [DIRECTORY] | tar -x

One file of a codebase, or a directory of it (by default all of it) as a tar archive.

  --archive         a tar archive of a directory instead of a file
  --version N       as it was at version N
  -o, --output FILE into this file instead of stdout
`;

export const codebaseDownload = remoteCommand({
  name: "codebase download",
  help: HELP,
  options: {
    archive: { type: "boolean" },
    version: { type: "string" },
    output: { type: "string", short: "o" },
  },
  takes: ["CODEBASE"],
  more: { name: "PATH", atMost: 1 },
  async run({ server, values, given: [codebaseId], more: [path] }) {
    const version = parseVersion(values.version, "--version");
    if (values.archive) {
      if (values.output === undefined && process.stdout.isTTY) {
        throw new UsageError("an archive goes to a file (--output) or a pipe, not to a terminal");
      }
      await writeTo(values.output, server.codebases.downloadArchive({ codebaseId, path: path ?? "", version }));
      return 0;
    }
    if (path === undefined) throw new UsageError("codebase download takes a path, or --archive for all of it");
    await writeTo(values.output, server.codebases.downloadFile({ codebaseId, filePath: path, version }));
    return 0;
  },
});
