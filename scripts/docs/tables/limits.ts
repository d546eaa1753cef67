import { describeConfiguration, loadConfiguration } from "@agentfense/server/configuration";
import { code, table } from "./table.ts";

/** What a client runs into, and the setting that decides. */
const LIMITS: readonly (readonly [what: string, setting: string])[] = [
  ["one message", "limits.max_message_size"],
  ["one message of an answer", "limits.max_response_size"],
  ["a JSON body of REST", "limits.max_body_size"],
  ["one upload, batch or archive", "limits.max_upload_size"],
  ["one file of a codebase", "storage.max_file_size"],
  ["the longest silence in an upload", "limits.upload_idle_timeout"],
  ["calls of an owner a second, on average", "limits.requests_per_second"],
  ["calls of an owner at the same time", "limits.concurrent_calls"],
  ["calls at the same time on one connection", "limits.streams_per_connection"],
  ["sandboxes of an owner", "sandbox.max_per_user"],
  ["sessions of a sandbox", "limits.sessions_per_sandbox"],
  ["a command that names no timeout", "runtime.default_timeout"],
  ["the longest timeout of a command; more is refused, not cut", "runtime.max_timeout"],
  ["kept of each stream of a command", "sandbox.resources.output_bytes"],
];

/** With the values that a server has by default. */
export async function limitTable(): Promise<string> {
  const settings = describeConfiguration(await loadConfiguration({ env: {}, flags: [] }));
  const rows = LIMITS.map(([what, name]) => {
    const setting = settings.find((each) => each.name === name);
    if (setting === undefined) throw new Error(`there is no setting ${name}`);
    return [what, String(setting.default), code(name)];
  });
  return table(["limit", "by default", "setting"], rows);
}
