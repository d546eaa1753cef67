import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { remoteCommand } from "../remote/command.ts";
import { followCommand, NOT_RUN } from "../remote/exec-output.ts";
import { parseDuration } from "../run/quantities.ts";

const HELP = `Usage: agentfense session exec [OPTIONS] SESSION -- COMMAND…

Runs a line in the shell of a session. Several words are joined with spaces, as the shell's own eval does. The output is
passed on as it comes. Ctrl-C ends the command, not the session.

  --timeout TIME    interrupt it after 30s, 10m … (default and maximum: the server's)

Exit codes: that of the command; 124 when its time was up; 125 when it could not be run; 2 when this command was given
wrongly; 130 after Ctrl-C.
`;

export const sessionExec = remoteCommand({
  name: "session exec",
  help: HELP,
  options: { timeout: { type: "string" } },
  takes: ["SESSION"],
  passesCommand: true,
  handlesClosedOutput: true,
  failureCode: NOT_RUN,
  async run({ server, values, given: [sessionId], command, json }) {
    const request = {
      sessionId,
      command: command.join(" "),
      ...(values.timeout === undefined ? {} : { timeout: durationFromMs(parseDuration(values.timeout, "--timeout")) }),
    };
    return await followCommand((signal) => server.sandboxes.sessionExecStream(request, { signal }), { json });
  },
});
