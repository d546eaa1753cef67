import type { AgentProfile, AgentSecret } from "@agentfense/sdk/project";

const ANTHROPIC_KEY: AgentSecret = { hosts: ["api.anthropic.com"], in: "header x-api-key" };
const OPENAI_KEY: AgentSecret = { hosts: ["api.openai.com"], in: "bearer" };
const GEMINI_KEY: AgentSecret = { hosts: ["generativelanguage.googleapis.com"], in: "header x-goog-api-key" };
/** Those of agents that work with any model. */
const MODELS = ["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai"];
const MODEL_KEYS: Readonly<Record<string, AgentSecret>> = {
  ANTHROPIC_API_KEY: ANTHROPIC_KEY,
  OPENAI_API_KEY: OPENAI_KEY,
  GEMINI_API_KEY: GEMINI_KEY,
  OPENROUTER_API_KEY: { hosts: ["openrouter.ai"], in: "bearer" },
};

/** The agents that are known by name. */
export const AGENTS: Readonly<Record<string, AgentProfile>> = {
  claude: {
    program: "claude",
    arguments: ["--dangerously-skip-permissions"],
    allow: ["api.anthropic.com", "claude.ai", "console.anthropic.com", "platform.claude.com"],
    secrets: {
      ANTHROPIC_API_KEY: ANTHROPIC_KEY,
      ANTHROPIC_AUTH_TOKEN: { hosts: ["api.anthropic.com"], in: "bearer" },
      CLAUDE_CODE_OAUTH_TOKEN: { hosts: ["api.anthropic.com"], in: "bearer" },
    },
    // It refuses to skip its questions as root, unless it is told that it is in a sandbox.
    env: { IS_SANDBOX: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
    install: "npm install -g @anthropic-ai/claude-code",
  },
  codex: {
    program: "codex",
    arguments: ["--dangerously-bypass-approvals-and-sandbox"],
    allow: ["api.openai.com", "auth.openai.com", "chatgpt.com"],
    // It takes a key from the second one alone.
    secrets: { OPENAI_API_KEY: OPENAI_KEY, CODEX_API_KEY: { ...OPENAI_KEY, from: "OPENAI_API_KEY" } },
    env: {},
    install: "npm install -g @openai/codex",
  },
  gemini: {
    program: "gemini",
    arguments: ["--yolo"],
    allow: [
      "generativelanguage.googleapis.com",
      "cloudcode-pa.googleapis.com",
      "oauth2.googleapis.com",
      "accounts.google.com",
    ],
    secrets: { GEMINI_API_KEY: GEMINI_KEY },
    // It would look for a container of its own otherwise.
    env: { GEMINI_SANDBOX: "false", GEMINI_CLI_TRUST_WORKSPACE: "true" },
    install: "npm install -g @google/gemini-cli",
  },
  opencode: {
    program: "opencode",
    arguments: [],
    allow: ["opencode.ai", "models.opencode.ai", "models.dev", ...MODELS],
    secrets: MODEL_KEYS,
    env: { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_PERMISSION: '{"*":"allow"}' },
    install: "npm install -g opencode-ai",
  },
  aider: {
    program: "aider",
    arguments: ["--yes-always", "--no-check-update", "--analytics-disable"],
    allow: MODELS,
    secrets: MODEL_KEYS,
    env: {},
    install: "uv tool install aider-chat",
  },
};

export const AGENT_ARGUMENTS = `the name of an agent first: ${Object.keys(AGENTS).join(", ")}`;
