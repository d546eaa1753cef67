import type { SessionInfo } from "@agentfense/sdk";
import { option } from "../option.ts";
import { serverCommand } from "../remote/command.ts";
import { NOT_RUN } from "../run/command-output.ts";
import { duration, environment, timeout, WORKDIR } from "../shared-options.ts";
import { recordText, tableText } from "../table.ts";
import { printable } from "../terminal.ts";
import { showTime } from "../wording.ts";

const create = serverCommand({
  name: "session create",
  summary: "open a shell in a sandbox that stays",
  about:
    "Opens a shell in a running sandbox that stays: its directory, variables and background jobs live from command to command.",
  options: {
    "": [
      option({ name: "shell", value: "SHELL", about: "bash, sh, dash or zsh (default: the sandbox's first)" }),
      environment("a variable"),
      WORKDIR,
      option({
        name: "idle-timeout",
        value: "TIME",
        about: "close it when nothing was asked of it for 10m, 2h …",
        parse: duration,
      }),
    ],
  },
  takes: ["SANDBOX"],
  async run({ client, values: { shell, env = [], workdir, "idle-timeout": idleTimeoutMs }, given: [id] }) {
    const options = { shell, env: Object.fromEntries(env), workdir, idleTimeoutMs };
    return sessionText(await client.createSession(id, options));
  },
});

const list = serverCommand({
  name: "session list",
  summary: "sessions of a sandbox",
  about: "The sessions of a sandbox.",
  takes: ["SANDBOX"],
  jsonForm: { list: "sessions" },
  async run({ client, given: [id] }) {
    const sessions = await client.listSessions(id);
    return tableText(
      ["ID", "STATUS", "SHELL", "CREATED", "CLOSED", "REASON"],
      sessions.map((session) => [
        session.id,
        session.status,
        session.shell,
        showTime(session.createdAt),
        showTime(session.closedAt),
        session.closeReason,
      ]),
    );
  },
});

const exec = serverCommand({
  name: "session exec",
  summary: "run a line in the shell of a session",
  about: `Runs a line in the shell of a session. Several words are joined with spaces, as the shell's own eval does. The output is
passed on as it comes. Ctrl-C ends the command, not the session.`,
  options: { "": [timeout("interrupt it after 30s, 10m … (default and maximum: the server's)")] },
  takes: ["SESSION"],
  passes: "-- COMMAND…",
  notes: `Exit codes: that of the command; 124 when its time was up; 125 when it could not be run; 2 when this command was given
wrongly; 130 after Ctrl-C.`,
  handlesClosedOutput: true,
  failureCode: NOT_RUN,
  jsonForm: "own",
  async run({ client, values: { timeout: timeoutMs }, given: [id], command, json }) {
    const { followCommand } = await import("../remote/exec.ts");
    return await followCommand(
      (signal) => client.sessionExecStream(id, command.join(" "), { timeoutMs, signal }),
      json,
    );
  },
});

const destroy = serverCommand({
  name: "session destroy",
  summary: "close a session",
  about: "Closes a session and ends everything in it.",
  takes: ["SESSION"],
  async run({ client, given: [id] }) {
    await client.destroySession(id);
    return `closed ${printable(id)}\n`;
  },
});

export const SESSION = [create, list, exec, destroy];

function sessionText(session: SessionInfo): string {
  return recordText([
    ["id", session.id],
    ["sandbox", session.sandboxId],
    ["status", session.status],
    ["shell", session.shell],
    ["created", showTime(session.createdAt)],
    ["closed", showTime(session.closedAt)],
    ["reason", session.closeReason],
  ]);
}
