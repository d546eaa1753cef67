import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { remoteCommand } from "../remote/command.ts";
import { showSession } from "../remote/session-view.ts";
import { parseDuration, parseEnvironment } from "../run/quantities.ts";

const HELP = `Usage: agentfense session create [OPTIONS] SANDBOX

Opens a shell in a running sandbox that stays: its directory, variables and background jobs live from command to command.

  --shell SHELL     bash, sh, dash or zsh (default: the sandbox's first)
  --env NAME=VALUE  a variable (may be repeated); NAME alone passes on the one here
  --workdir DIR     where to start, absolute or relative to the workspace
  --idle-timeout TIME  close it when nothing was asked of it for 10m, 2h …
`;

export const sessionCreate = remoteCommand({
  name: "session create",
  help: HELP,
  options: {
    shell: { type: "string" },
    env: { type: "string", multiple: true },
    workdir: { type: "string" },
    "idle-timeout": { type: "string" },
  },
  takes: ["SANDBOX"],
  async run({ server, values, given: [sandboxId], json }) {
    const idle = values["idle-timeout"];
    const session = await server.sandboxes.createSession({
      sandboxId,
      shell: values.shell ?? "",
      env: parseEnvironment(values.env ?? [], process.env),
      workdir: values.workdir ?? "",
      ...(idle === undefined ? {} : { idleTimeout: durationFromMs(parseDuration(idle, "--idle-timeout")) }),
    });
    await showSession(session, json);
    return 0;
  },
});
