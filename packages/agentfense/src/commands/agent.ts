import { POLICY_FILE } from "@agentfense/sdk/project";
import { AGENT_ARGUMENTS, AGENTS } from "../agents/profiles.ts";
import { command } from "../command.ts";
import { option } from "../option.ts";
import { EXPLAIN, SANDBOX_OPTIONS } from "../run/options.ts";
import { json } from "../shared-options.ts";

export const agent = command({
  name: "agent",
  usage: "NAME [OPTIONS] [DIR] [-- ARGUMENT…]",
  about: `Lets a coding agent work on DIR (default: where you are): your own installation of it, in a sandbox that sees DIR at
/workspace as the rules allow, reaches its model and what you allow, and never holds your keys. It starts without asking for
permissions, for the sandbox is the guard. When it ends you see what it changed, and apply, choose, keep or discard that.

NAME is one of: ${Object.keys(AGENTS).join(", ")}.
ARGUMENTs go to the agent: agentfense agent claude -- -p "explain this project"

Its home (login, settings, caches) is kept per project, outside of it. Keys that are set here (ANTHROPIC_API_KEY …) stay here:
the agent gets a placeholder, which is replaced on its way to the model's host and nowhere else.`,
  options: {
    "": [
      option({ name: "continue", about: "go on with the changes that were kept" }),
      option({
        name: "profile",
        value: "FILE",
        kind: "file",
        about: `another agent, or the same one otherwise: a YAML file with program, arguments, allow, secrets and env
(docs/agents.md); ${POLICY_FILE} can hold such profiles, too, under agents: NAME:`,
      }),
      option({
        name: "trust-profile",
        about: `take the one of ${POLICY_FILE}, which says what runs and where keys go`,
      }),
    ],
    ...SANDBOX_OPTIONS,
    Other: [EXPLAIN, json("one JSON object at the end instead of asking, as that of agentfense run")],
  },
  takes: ["NAME", "[DIR]"],
  wants: AGENT_ARGUMENTS,
  completes: "directory",
  passes: "[-- ARGUMENT…]",
  notes: `Exit codes: that of the agent, else those of agentfense run.
Without a terminal nothing is asked: changes are kept unless --apply writes them back.`,
  handlesClosedOutput: true,
  run: async (call) => await (await import("../agents/agent.ts")).runAgent(call),
});
