import { showCodebase } from "../remote/codebase-view.ts";
import { remoteCommand } from "../remote/command.ts";

export const codebaseShow = remoteCommand({
  name: "codebase show",
  help: "Usage: agentfense codebase show [OPTIONS] CODEBASE\n\nName, owner, size and version of a codebase.\n",
  takes: ["CODEBASE"],
  async run({ server, given: [codebaseId], json }) {
    await showCodebase(await server.codebases.getCodebase({ codebaseId }), json);
    return 0;
  },
});
