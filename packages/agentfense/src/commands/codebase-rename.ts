import { showNewVersion } from "../remote/codebase-view.ts";
import { remoteCommand } from "../remote/command.ts";

export const codebaseRename = remoteCommand({
  name: "codebase rename",
  help: "Usage: agentfense codebase rename [OPTIONS] CODEBASE FROM TO\n\nRenames a file or a directory of a codebase.\n",
  takes: ["CODEBASE", "FROM", "TO"],
  async run({ server, given: [codebaseId, fromPath, toPath], json }) {
    await showNewVersion(await server.codebases.renameFile({ codebaseId, fromPath, toPath }), json);
    return 0;
  },
});
