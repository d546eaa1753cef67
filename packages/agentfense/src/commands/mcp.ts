import { needAgentLayer } from "../agent-layer.ts";
import { command } from "../command.ts";
import { MCP_OPTIONS } from "../mcp/options.ts";

export const mcp = command({
  name: "mcp",
  about: `An MCP server for an agent such as Claude Code or Cursor: run_code, shell, read_file, write_file, edit_file, list_files and
search, in a sandbox that sees DIR (default: where you are) at /workspace as the rules allow. The changes and the audit trail
are resources. It speaks over standard input and output, and ends when the client does; what we have to say goes to stderr.
It is part of the agent layer, the package @agentfense/agent.

DIR itself is not written unless you ask for it.`,
  options: MCP_OPTIONS,
  takes: ["[DIR]"],
  wants: "one directory",
  completes: "directory",
  notes: `Exit codes: 0 when the client is gone or after a signal, 123 when not everything could be written back (the rest is kept as a
diff, and its place is told), 1 when it did not work, 125 when the sandbox cannot be had, 2 when this command was given wrongly.`,
  handlesClosedOutput: true,
  async run({ values, given: [directory] }) {
    const { readMcpRequest } = await import("../mcp/request.ts");
    const request = await readMcpRequest(values, directory, process.env);
    // The engine and the protocol are loaded for who serves, not for who asks for help.
    const { serveMcp } = await needAgentLayer("mcp", () => import("../mcp/serve.ts"));
    return await serveMcp(request);
  },
});
