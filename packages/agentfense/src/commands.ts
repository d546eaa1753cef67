import type { Families, Family } from "./command.ts";

/** The first words of all commands as people look for them. */
export const GROUPS = {
  Here: {
    agent: {
      about: "let a coding agent (claude, codex, gemini, opencode, aider) work on a directory",
      load: async () => [(await import("./commands/agent.ts")).agent],
    },
    run: {
      about: "run a command on a directory in a sandbox, and list what it changed",
      load: async () => [(await import("./commands/run.ts")).run],
    },
    shell: {
      about: "an interactive shell on a directory in a sandbox",
      load: async () => [(await import("./commands/run.ts")).shell],
    },
    mcp: {
      about: "an MCP server: tools for a coding agent, on a directory in a sandbox",
      load: async () => [(await import("./commands/mcp.ts")).mcp],
    },
    mount: {
      about: "show a directory to an agent through its rules, until interrupted",
      load: async () => [(await import("./commands/machine.ts")).mount],
    },
    diff: {
      about: "what a kept delta changes in its codebase",
      load: async () => [(await import("./commands/delta.ts")).diff],
    },
    apply: {
      about: "write the changes of a kept delta into the codebase, as far as the rules allow",
      load: async () => [(await import("./commands/delta.ts")).apply],
    },
    merge: {
      about: "bring the changes of several kept deltas together in one directory",
      load: async () => [(await import("./commands/delta.ts")).merge],
    },
    discard: {
      about: "throw away changes of a kept delta",
      load: async () => [(await import("./commands/delta.ts")).discard],
    },
    doctor: {
      about: "what this machine lacks for running sandboxes, and how to fix it",
      load: async () => [(await import("./commands/machine.ts")).doctor],
    },
  },
  Rules: {
    init: {
      about: "write a policy for a project, .agentfense.yaml, from what is in it",
      load: async () => [(await import("./commands/machine.ts")).init],
    },
    policy: {
      about: "what an agent would see and why, and what looks wrong about that",
      load: async () => (await import("./commands/policy.ts")).POLICY,
    },
  },
  Server: {
    serve: {
      about: "the server: codebases, sandboxes and sessions over gRPC and REST",
      load: async () => [(await import("./commands/serve.ts")).serve],
    },
    config: {
      about: "the settings of the server",
      load: async () => (await import("./commands/serve.ts")).CONFIG,
    },
    key: { about: "API keys", load: async () => (await import("./commands/key.ts")).KEY },
    audit: { about: "the record of what happened", load: async () => (await import("./commands/audit.ts")).AUDIT },
    codebase: {
      about: "directories on the server, in versions",
      load: async () => (await import("./commands/codebase.ts")).CODEBASE,
    },
    sandbox: {
      about: "sandboxes on the server, their files and changes",
      load: async () => (await import("./commands/sandbox.ts")).SANDBOX,
    },
    session: {
      about: "shells in a sandbox that stay",
      load: async () => (await import("./commands/session.ts")).SESSION,
    },
    home: {
      about: "homes on the server that outlive sandboxes",
      load: async () => (await import("./commands/home.ts")).HOME,
    },
    secret: {
      about: "secrets on the server that sandboxes use and never have",
      load: async () => (await import("./commands/secret.ts")).SECRET,
    },
  },
  Shell: {
    completion: {
      about: "a script that completes commands and options in your shell: bash, zsh or fish",
      load: async () => [(await import("./commands/machine.ts")).completion],
    },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Family>>>>;

/** All of them by their words. */
export const FAMILIES: Families = Object.assign({}, ...Object.values(GROUPS));
