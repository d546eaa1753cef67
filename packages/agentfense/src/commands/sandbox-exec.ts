import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { remoteCommand } from "../remote/command.ts";
import { followCommand, NOT_RUN } from "../remote/exec-output.ts";
import { readInput } from "../remote/input.ts";
import { parseDuration, parseEnvironment } from "../run/quantities.ts";

const HELP = `Usage: agentfense sandbox exec [OPTIONS] SANDBOX -- COMMAND [ARGUMENT…]

Runs COMMAND in a running sandbox. With arguments it is run as it stands; COMMAND alone is a line for the shell. Its output
is passed on as it comes, input from a pipe or a file (3 MiB at most) is passed in. Ctrl-C ends it.

  --timeout TIME    kill it after 30s, 10m … (default and maximum: the server's)
  --env NAME=VALUE  a variable (may be repeated); NAME alone passes on the one here
  --workdir DIR     where to start, absolute or relative to the workspace

With --json, one object at the end: { exitCode, signal, timedOut, outOfMemory, durationMs, syncedVersion, syncProblems,
stdout, stderr }.

Exit codes: that of the command; 128 + n when signal n killed it; 124 when its time was up; 125 when it could not be run;
2 when this command was given wrongly; 130 after Ctrl-C.
`;

export const sandboxExec = remoteCommand({
  name: "sandbox exec",
  help: HELP,
  options: {
    timeout: { type: "string" },
    env: { type: "string", multiple: true },
    workdir: { type: "string" },
  },
  takes: ["SANDBOX"],
  passesCommand: true,
  handlesClosedOutput: true,
  failureCode: NOT_RUN,
  async run({ server, values, given: [sandboxId], command, json }) {
    const request = {
      sandboxId,
      ...(command.length === 1 ? { command: command[0]! } : { argv: [...command] }),
      env: parseEnvironment(values.env ?? [], process.env),
      workdir: values.workdir ?? "",
      ...(values.timeout === undefined ? {} : { timeout: durationFromMs(parseDuration(values.timeout, "--timeout")) }),
    };
    const input = await readInput();
    const full = input === undefined ? request : { ...request, stdinBytes: input };
    return await followCommand((signal) => server.sandboxes.execStream(full, { signal }), { json });
  },
});
