import type { McpApproval } from "@agentfense/agent/mcp";
import { option } from "../option.ts";
import { APPLY, HOLD_EXECUTABLES, HOME, TOOLCHAINS } from "../run/options.ts";
import { SECRETS } from "../secret-options.ts";
import { ALL_CHANGES, ALLOW, environment, IMAGE, LIMITS, NETWORK, PULL, RULES, RUNTIME } from "../shared-options.ts";

/** Who agrees to risky calls; the words of the MCP server itself. */
const APPROVALS = ["ask", "never"] as const satisfies readonly McpApproval[];

const DEFAULT_ADDRESS = "127.0.0.1:9010";

const CLIENT = [
  option({
    name: "http",
    value: "ADDRESS",
    alone: DEFAULT_ADDRESS,
    about: `serve over HTTP instead, until SIGINT or SIGTERM, at http://ADDRESS/mcp (default ${DEFAULT_ADDRESS})`,
  }),
  option({
    name: "key",
    value: "KEY",
    about: `what HTTP clients have to send as Authorization: Bearer KEY; better in AGENTFENSE_API_KEY: other users
of this machine can see what is on a command line (default: a random one, which is printed)`,
  }),
  option({
    name: "allow-host",
    value: "NAME",
    isRepeated: true,
    about: "another name by which HTTP clients call this machine (may be repeated)",
  }),
  option({
    name: "approve",
    value: "WHO",
    words: APPROVALS,
    about: `who agrees to calls rated HIGH or CRITICAL: ask (default: the client's user; where the client cannot ask,
they are refused) or never (nobody is asked, they run)`,
  }),
  option({
    name: "browser",
    value: "PATH",
    kind: "file",
    alone: "",
    about: "tools for a browser too: a Chromium in the sandbox, with the network that the sandbox has",
  }),
] as const;

export const MCP_OPTIONS = {
  Rules: RULES,
  Client: CLIENT,
  Sandbox: [
    RUNTIME,
    IMAGE,
    PULL,
    TOOLCHAINS,
    NETWORK,
    ...ALLOW,
    ...SECRETS,
    environment("a variable for commands"),
    HOME,
  ],
  Limits: LIMITS,
  Changes: [
    option({
      name: "write-through",
      about: "write them back to DIR after each call, as far as the rules allow: some clients leave no time at the end",
    }),
    APPLY,
    HOLD_EXECUTABLES,
    ALL_CHANGES,
    option({
      name: "patch",
      value: "FILE",
      kind: "file",
      about: `write them here at the end, as a patch for git apply
Without any of these they are listed and thrown away.`,
    }),
  ],
} as const;
