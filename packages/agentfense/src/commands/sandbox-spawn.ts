import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { remoteCommand } from "../remote/command.ts";
import { showProcess } from "../remote/process-view.ts";
import { parseDuration, parseEnvironment } from "../run/quantities.ts";
import { terminalSize } from "../run/raw-terminal.ts";

const HELP = `Usage: agentfense sandbox spawn [OPTIONS] SANDBOX -- COMMAND [ARGUMENT…]

Starts COMMAND in a running sandbox, prints its number, and leaves it running: until it ends, the sandbox is stopped, or its
time is up. With arguments it is run as it stands; COMMAND alone is a line for the shell.

  --tag NAME        another name for it, for attach and kill
  --input           keep an input open for "sandbox attach --input"; otherwise it reads an end of file
  --terminal        run it on a terminal of its own, for "sandbox attach --terminal"
  --timeout TIME    kill it with all that it started after 30s, 10m … (default: never)
  --env NAME=VALUE  a variable (may be repeated); NAME alone passes on the one here
  --workdir DIR     where to start, absolute or relative to the workspace
`;

export const sandboxSpawn = remoteCommand({
  name: "sandbox spawn",
  help: HELP,
  options: {
    tag: { type: "string" },
    input: { type: "boolean" },
    terminal: { type: "boolean" },
    timeout: { type: "string" },
    env: { type: "string", multiple: true },
    workdir: { type: "string" },
  },
  takes: ["SANDBOX"],
  passesCommand: true,
  async run({ server, values, given: [sandboxId], command, json }) {
    const started = await server.sandboxes.startProcess({
      sandboxId,
      ...(command.length === 1 ? { command: command[0]! } : { argv: [...command] }),
      tag: values.tag ?? "",
      stdin: values.input ?? false,
      ...(values.terminal === true && { terminal: terminalSize() }),
      env: parseEnvironment(values.env ?? [], process.env),
      workdir: values.workdir ?? "",
      ...(values.timeout === undefined ? {} : { timeout: durationFromMs(parseDuration(values.timeout, "--timeout")) }),
    });
    await showProcess(started, json);
    return 0;
  },
});
