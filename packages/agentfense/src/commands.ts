import type { Command } from "./command.ts";

/** One command: a line about it for lists, and the code, which loads when it is called. */
interface CommandEntry {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** Commands load when they are called: `policy` needs no engine, and help needs nothing. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  run: {
    summary: "run a command on a directory in a sandbox, and list what it changed",
    load: async () => (await import("./commands/run.ts")).run,
  },
  agent: {
    summary: "let a coding agent (claude, codex, gemini, opencode, aider) work on a directory",
    load: async () => (await import("./commands/agent.ts")).agent,
  },
  shell: {
    summary: "an interactive shell on a directory in a sandbox",
    load: async () => (await import("./commands/shell.ts")).shell,
  },
  mcp: {
    summary: "an MCP server: tools for a coding agent, on a directory in a sandbox",
    load: async () => (await import("./commands/mcp.ts")).mcp,
  },
  doctor: {
    summary: "what this machine lacks for running sandboxes, and how to fix it",
    load: async () => (await import("./commands/doctor.ts")).doctor,
  },
  mount: {
    summary: "show a directory to an agent through its rules, until interrupted",
    load: async () => (await import("./commands/mount.ts")).mount,
  },
  diff: {
    summary: "what a kept delta changes in its codebase",
    load: async () => (await import("./commands/diff.ts")).diff,
  },
  apply: {
    summary: "write the changes of a kept delta into the codebase, as far as the rules allow",
    load: async () => (await import("./commands/apply.ts")).apply,
  },
  discard: {
    summary: "throw away changes of a kept delta",
    load: async () => (await import("./commands/discard.ts")).discard,
  },
  init: {
    summary: "write a policy for a project, .agentfense.yaml, from what is in it",
    load: async () => (await import("./commands/init.ts")).init,
  },
  "policy explain": {
    summary: "which rule decides about a path, and which ones lost",
    load: async () => (await import("./commands/policy-explain.ts")).policyExplain,
  },
  "policy learn": {
    summary: "run a command with everything visible, and print the least rules for it",
    load: async () => (await import("./commands/policy-learn.ts")).policyLearn,
  },
  "policy lint": {
    summary: "secrets that stay visible, rules that match nothing",
    load: async () => (await import("./commands/policy-lint.ts")).policyLint,
  },
  "policy simulate": {
    summary: "what rules would have refused of what was done",
    load: async () => (await import("./commands/policy-simulate.ts")).policySimulate,
  },
  "policy tree": {
    summary: "a directory as an agent would see it, with the level of each path",
    load: async () => (await import("./commands/policy-tree.ts")).policyTree,
  },
  serve: {
    summary: "the server: codebases, sandboxes and sessions over gRPC and REST",
    load: async () => (await import("./commands/serve.ts")).serve,
  },
  "config print": {
    summary: "every setting of the server, and where its value comes from",
    load: async () => (await import("./commands/config-print.ts")).configPrint,
  },
  "key create": {
    summary: "make an API key",
    load: async () => (await import("./commands/key-create.ts")).keyCreate,
  },
  "key list": {
    summary: "the API keys, without their secrets",
    load: async () => (await import("./commands/key-list.ts")).keyList,
  },
  "key revoke": {
    summary: "end an API key",
    load: async () => (await import("./commands/key-revoke.ts")).keyRevoke,
  },
  "audit list": {
    summary: "events of the audit log",
    load: async () => (await import("./commands/audit-list.ts")).auditList,
  },
  "audit watch": {
    summary: "events of the audit log as they happen",
    load: async () => (await import("./commands/audit-watch.ts")).auditWatch,
  },
  "audit verify": {
    summary: "whether the stored audit log is whole",
    load: async () => (await import("./commands/audit-verify.ts")).auditVerify,
  },
  "codebase create": {
    summary: "make an empty codebase",
    load: async () => (await import("./commands/codebase-create.ts")).codebaseCreate,
  },
  "codebase upload": {
    summary: "upload a directory; only what the server lacks is sent",
    load: async () => (await import("./commands/codebase-upload.ts")).codebaseUpload,
  },
  "codebase list": {
    summary: "codebases with their sizes and versions",
    load: async () => (await import("./commands/codebase-list.ts")).codebaseList,
  },
  "codebase show": {
    summary: "one codebase",
    load: async () => (await import("./commands/codebase-show.ts")).codebaseShow,
  },
  "codebase files": {
    summary: "files of a codebase",
    load: async () => (await import("./commands/codebase-files.ts")).codebaseFiles,
  },
  "codebase download": {
    summary: "a file of a codebase, or all of it as an archive",
    load: async () => (await import("./commands/codebase-download.ts")).codebaseDownload,
  },
  "codebase versions": {
    summary: "versions of a codebase, and what each changed",
    load: async () => (await import("./commands/codebase-versions.ts")).codebaseVersions,
  },
  "codebase rollback": {
    summary: "a new version with the content of an old one",
    load: async () => (await import("./commands/codebase-rollback.ts")).codebaseRollback,
  },
  "codebase rename": {
    summary: "rename a file of a codebase",
    load: async () => (await import("./commands/codebase-rename.ts")).codebaseRename,
  },
  "codebase rm": {
    summary: "delete a file of a codebase",
    load: async () => (await import("./commands/codebase-rm.ts")).codebaseRm,
  },
  "codebase delete": {
    summary: "delete a codebase with all its versions",
    load: async () => (await import("./commands/codebase-delete.ts")).codebaseDelete,
  },
  "sandbox create": {
    summary: "make a sandbox on a codebase",
    load: async () => (await import("./commands/sandbox-create.ts")).sandboxCreate,
  },
  "sandbox list": {
    summary: "sandboxes and their states",
    load: async () => (await import("./commands/sandbox-list.ts")).sandboxList,
  },
  "sandbox show": {
    summary: "everything about one sandbox",
    load: async () => (await import("./commands/sandbox-show.ts")).sandboxShow,
  },
  "sandbox start": {
    summary: "make a sandbox ready for commands",
    load: async () => (await import("./commands/sandbox-start.ts")).sandboxStart,
  },
  "sandbox stop": {
    summary: "end everything that runs in a sandbox",
    load: async () => (await import("./commands/sandbox-stop.ts")).sandboxStop,
  },
  "sandbox pause": {
    summary: "hold everything in a sandbox still",
    load: async () => (await import("./commands/sandbox-pause.ts")).sandboxPause,
  },
  "sandbox resume": {
    summary: "let a paused sandbox go on",
    load: async () => (await import("./commands/sandbox-resume.ts")).sandboxResume,
  },
  "sandbox destroy": {
    summary: "end sandboxes and throw away their changes",
    load: async () => (await import("./commands/sandbox-destroy.ts")).sandboxDestroy,
  },
  "sandbox exec": {
    summary: "run a command in a sandbox",
    load: async () => (await import("./commands/sandbox-exec.ts")).sandboxExec,
  },
  "sandbox spawn": {
    summary: "start a process in a sandbox that stays",
    load: async () => (await import("./commands/sandbox-spawn.ts")).sandboxSpawn,
  },
  "sandbox ps": {
    summary: "what runs in a sandbox",
    load: async () => (await import("./commands/sandbox-ps.ts")).sandboxPs,
  },
  "sandbox attach": {
    summary: "the output of a process in a sandbox, as it comes",
    load: async () => (await import("./commands/sandbox-attach.ts")).sandboxAttach,
  },
  "sandbox kill": {
    summary: "send a signal to a process in a sandbox",
    load: async () => (await import("./commands/sandbox-kill.ts")).sandboxKill,
  },
  "sandbox forward": {
    summary: "reach a port of a sandbox at one of this machine",
    load: async () => (await import("./commands/sandbox-forward.ts")).sandboxForward,
  },
  "sandbox ls": {
    summary: "a directory as the sandbox sees it",
    load: async () => (await import("./commands/sandbox-ls.ts")).sandboxLs,
  },
  "sandbox read": {
    summary: "a file as the sandbox sees it",
    load: async () => (await import("./commands/sandbox-read.ts")).sandboxRead,
  },
  "sandbox write": {
    summary: "write a file of a sandbox, as far as its rules allow",
    load: async () => (await import("./commands/sandbox-write.ts")).sandboxWrite,
  },
  "sandbox changes": {
    summary: "what a sandbox changed",
    load: async () => (await import("./commands/sandbox-changes.ts")).sandboxChanges,
  },
  "sandbox diff": {
    summary: "what a sandbox changed, as a unified diff",
    load: async () => (await import("./commands/sandbox-diff.ts")).sandboxDiff,
  },
  "sandbox apply": {
    summary: "write a sandbox's changes into its codebase",
    load: async () => (await import("./commands/sandbox-apply.ts")).sandboxApply,
  },
  "sandbox discard": {
    summary: "throw away changes of a sandbox",
    load: async () => (await import("./commands/sandbox-discard.ts")).sandboxDiscard,
  },
  "sandbox permissions": {
    summary: "the rules of a sandbox, or new ones",
    load: async () => (await import("./commands/sandbox-permissions.ts")).sandboxPermissions,
  },
  "sandbox network": {
    summary: "the hosts that a sandbox may reach, or others",
    load: async () => (await import("./commands/sandbox-network.ts")).sandboxNetwork,
  },
  "sandbox explain": {
    summary: "which rule decides about a path in a sandbox",
    load: async () => (await import("./commands/sandbox-explain.ts")).sandboxExplain,
  },
  "session create": {
    summary: "open a shell in a sandbox that stays",
    load: async () => (await import("./commands/session-create.ts")).sessionCreate,
  },
  "session list": {
    summary: "sessions of a sandbox",
    load: async () => (await import("./commands/session-list.ts")).sessionList,
  },
  "session exec": {
    summary: "run a line in the shell of a session",
    load: async () => (await import("./commands/session-exec.ts")).sessionExec,
  },
  "session destroy": {
    summary: "close a session",
    load: async () => (await import("./commands/session-destroy.ts")).sessionDestroy,
  },
  "home list": {
    summary: "homes that outlive sandboxes",
    load: async () => (await import("./commands/home-list.ts")).homeList,
  },
  "home delete": {
    summary: "remove a home that outlives sandboxes",
    load: async () => (await import("./commands/home-delete.ts")).homeDelete,
  },
  completion: {
    summary: "a script that completes commands and options in your shell: bash, zsh or fish",
    load: async () => (await import("./commands/completion.ts")).completion,
  },
};

/** What the families of commands are about. */
export const FAMILIES: Readonly<Record<string, string>> = {
  policy: "what an agent would see and why, and what looks wrong about that",
  config: "the settings of the server",
  key: "API keys",
  audit: "the record of what happened",
  codebase: "directories on the server, in versions",
  sandbox: "sandboxes on the server, their files and changes",
  session: "shells in a sandbox that stay",
  home: "homes on the server that outlive sandboxes",
};

/** The first words of all commands as people look for them. */
export const GROUPS: readonly { readonly title: string; readonly words: readonly string[] }[] = [
  { title: "Here", words: ["agent", "run", "shell", "mcp", "mount", "diff", "apply", "discard", "doctor"] },
  { title: "Rules", words: ["init", "policy"] },
  { title: "Server", words: ["serve", "config", "key", "audit", "codebase", "sandbox", "session", "home"] },
  { title: "Shell", words: ["completion"] },
];
