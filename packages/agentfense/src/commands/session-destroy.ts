import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { printJson } from "../remote/show.ts";
import { printable } from "../terminal.ts";

export const sessionDestroy = remoteCommand({
  name: "session destroy",
  help: "Usage: agentfense session destroy [OPTIONS] SESSION\n\nCloses a session and ends everything in it.\n",
  takes: ["SESSION"],
  async run({ server, given: [sessionId], json }) {
    await server.sandboxes.destroySession({ sessionId });
    await (json ? printJson({}) : print(`closed ${printable(sessionId)}\n`));
    return 0;
  },
});
