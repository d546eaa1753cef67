// Made from the help of every command by packages/agentfense/test/completion/generated.test.ts; vitest -u renews it.
import type { CommandShape } from "../shape.ts";

export const FAMILIES: Readonly<Record<string, string>> = {
  "policy": "what an agent would see and why, and what looks wrong about that",
  "config": "the settings of the server",
  "key": "API keys",
  "audit": "the record of what happened",
  "codebase": "directories on the server, in versions",
  "sandbox": "sandboxes on the server, their files and changes",
  "session": "shells in a sandbox that stay",
  "home": "homes on the server that outlive sandboxes"
};

export const SHAPES: readonly CommandShape[] = [
 {
  "name": "run",
  "summary": "run a command on a directory in a sandbox, and list what it changed",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--runtime",
    "about": "bwrap",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--image",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--oci-runtime",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pull",
    "about": "docker"
   },
   {
    "name": "--root",
    "about": "bwrap",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--read-only-path",
    "about": "bwrap",
    "value": {
     "name": "PATH",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--toolchains",
    "about": "bwrap",
    "value": {
     "name": "WHICH",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--network",
    "about": "none",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--allow",
    "about": "HOST["
   },
   {
    "name": "--allow-preset",
    "about": "the same for the hosts of npm, pypi, github …",
    "value": {
     "name": "LIST",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--secret",
    "about": "NAME@HOST[,HOST][=PLACE]",
    "value": {
     "name": "SECRET",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--secret-from",
    "about": "NAME=env",
    "value": {
     "name": "SOURCE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable for the command",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--workdir",
    "about": "where to start, absolute or relative to the workspace",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--home",
    "about": "keep the home",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--memory",
    "about": "512m, 1g …",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--cpus",
    "about": "0.5, 2 …",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pids",
    "about": "processes and threads together",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--disk",
    "about": "the most the changes and the home may take together",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--delta",
    "about": "keep them here",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--apply",
    "about": "write them back to DIR at the end",
    "value": {
     "name": "WHEN",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--hold-executables",
    "about": "of that, write back nothing that ! marks in the list"
   },
   {
    "name": "--all",
    "about": "list each of them, also many in one directory and those that DIR's .gitignore files name"
   },
   {
    "name": "--explain",
    "about": "run nothing"
   },
   {
    "name": "--timeout",
    "about": "kill it after 30s, 10m …",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "one JSON object at the end instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "agent",
  "summary": "let a coding agent (claude, codex, gemini, opencode, aider) work on a directory",
  "options": [
   {
    "name": "--continue",
    "about": "go on with the changes that were kept"
   },
   {
    "name": "--profile",
    "about": "another agent, or the same one otherwise",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--trust-profile",
    "about": "take the one of .agentfense.yaml, which says what runs and where keys go"
   },
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--runtime",
    "about": "bwrap",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--image",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--oci-runtime",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pull",
    "about": "docker"
   },
   {
    "name": "--root",
    "about": "bwrap",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--read-only-path",
    "about": "bwrap",
    "value": {
     "name": "PATH",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--toolchains",
    "about": "bwrap",
    "value": {
     "name": "WHICH",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--network",
    "about": "none",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--allow",
    "about": "HOST["
   },
   {
    "name": "--allow-preset",
    "about": "the same for the hosts of npm, pypi, github …",
    "value": {
     "name": "LIST",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--secret",
    "about": "NAME@HOST[,HOST][=PLACE]",
    "value": {
     "name": "SECRET",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--secret-from",
    "about": "NAME=env",
    "value": {
     "name": "SOURCE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable for the command",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--workdir",
    "about": "where to start, absolute or relative to the workspace",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--home",
    "about": "keep the home",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--memory",
    "about": "512m, 1g …",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--cpus",
    "about": "0.5, 2 …",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pids",
    "about": "processes and threads together",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--disk",
    "about": "the most the changes and the home may take together",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--delta",
    "about": "keep them here",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--apply",
    "about": "write them back to DIR at the end",
    "value": {
     "name": "WHEN",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--hold-executables",
    "about": "of that, write back nothing that ! marks in the list"
   },
   {
    "name": "--all",
    "about": "list each of them, also many in one directory and those that DIR's .gitignore files name"
   },
   {
    "name": "--explain",
    "about": "run nothing"
   },
   {
    "name": "--json",
    "about": "one JSON object at the end instead of asking, as that of agentfense run"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "shell",
  "summary": "an interactive shell on a directory in a sandbox",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--runtime",
    "about": "bwrap",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--image",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--oci-runtime",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pull",
    "about": "docker"
   },
   {
    "name": "--root",
    "about": "bwrap",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--read-only-path",
    "about": "bwrap",
    "value": {
     "name": "PATH",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--toolchains",
    "about": "bwrap",
    "value": {
     "name": "WHICH",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--network",
    "about": "none",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--allow",
    "about": "HOST["
   },
   {
    "name": "--allow-preset",
    "about": "the same for the hosts of npm, pypi, github …",
    "value": {
     "name": "LIST",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--secret",
    "about": "NAME@HOST[,HOST][=PLACE]",
    "value": {
     "name": "SECRET",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--secret-from",
    "about": "NAME=env",
    "value": {
     "name": "SOURCE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable for the command",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--workdir",
    "about": "where to start, absolute or relative to the workspace",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--home",
    "about": "keep the home",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--memory",
    "about": "512m, 1g …",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--cpus",
    "about": "0.5, 2 …",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pids",
    "about": "processes and threads together",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--disk",
    "about": "the most the changes and the home may take together",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--delta",
    "about": "keep them here",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--apply",
    "about": "write them back to DIR at the end",
    "value": {
     "name": "WHEN",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--hold-executables",
    "about": "of that, write back nothing that ! marks in the list"
   },
   {
    "name": "--all",
    "about": "list each of them, also many in one directory and those that DIR's .gitignore files name"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "mcp",
  "summary": "an MCP server: tools for a coding agent, on a directory in a sandbox",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--http",
    "about": "serve over HTTP instead, until SIGINT or SIGTERM, at http",
    "value": {
     "name": "ADDRESS",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--key",
    "about": "what HTTP clients have to send as Authorization",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--allow-host",
    "about": "another name by which HTTP clients call this machine",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--approve",
    "about": "who agrees to calls rated HIGH or CRITICAL",
    "value": {
     "name": "WHO",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--browser",
    "about": "tools for a browser too",
    "value": {
     "name": "PATH",
     "kind": "file",
     "optional": true
    }
   },
   {
    "name": "--runtime",
    "about": "bwrap",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--image",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pull",
    "about": "docker"
   },
   {
    "name": "--toolchains",
    "about": "bwrap",
    "value": {
     "name": "WHICH",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--network",
    "about": "none",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--allow",
    "about": "HOST["
   },
   {
    "name": "--allow-preset",
    "about": "the same for the hosts of npm, pypi, github …",
    "value": {
     "name": "LIST",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable for commands",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--home",
    "about": "keep the home",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--memory",
    "about": "512m, 1g …",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--cpus",
    "about": "0.5, 2 …",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pids",
    "about": "processes and threads together",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--disk",
    "about": "the most the changes and the home may take together",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--write-through",
    "about": "write them back to DIR after each call, as far as the rules allow"
   },
   {
    "name": "--apply",
    "about": "write them back to DIR at the end",
    "value": {
     "name": "WHEN",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--hold-executables",
    "about": "write back nothing that ! marks in the list"
   },
   {
    "name": "--all",
    "about": "list each of them at the end, also many in one directory and those that DIR's .gitignore files name"
   },
   {
    "name": "--patch",
    "about": "write them here at the end, as a patch for git apply",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "doctor",
  "summary": "what this machine lacks for running sandboxes, and how to fix it",
  "options": [
   {
    "name": "--runtime",
    "about": "only what bwrap or docker needs",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "one JSON object instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "mount",
  "summary": "show a directory to an agent through its rules, until interrupted",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--delta",
    "about": "keep the changes here",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--quota",
    "about": "the most the delta may hold",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--quota-files",
    "about": "the most entries the delta may hold",
    "value": {
     "name": "N",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--owner",
    "about": "show every entry as owned by this user",
    "value": {
     "name": "UID:GID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--events",
    "about": "print each refusal to stderr, one JSON object a line"
   },
   {
    "name": "--no-passthrough",
    "about": "serve reads and writes here instead of letting the kernel go to the files directly"
   },
   {
    "name": "--no-xattrs",
    "about": "no extended attributes"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "diff",
  "summary": "what a kept delta changes in its codebase",
  "options": [
   {
    "name": "--delta",
    "about": "the directory given to run or mount as --delta",
    "value": {
     "name": "DELTA",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--all",
    "about": "also what the .gitignore files of the directory name"
   },
   {
    "name": "--stat",
    "about": "one line a change instead, with counts of lines"
   },
   {
    "name": "--json",
    "about": "one array of { kind, path, type, size, linesAdded, linesRemoved, sensitive, … } instead"
   },
   {
    "name": "--raw",
    "about": "a patch, as git diff --binary has it, for git apply"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "file"
 },
 {
  "name": "apply",
  "summary": "write the changes of a kept delta into the codebase, as far as the rules allow",
  "options": [
   {
    "name": "--delta",
    "about": "the directory given to run or mount as --delta",
    "value": {
     "name": "DELTA",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--preset",
    "about": "check against this preset instead of the rules that the delta remembers",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "the same with a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--all",
    "about": "list each change"
   },
   {
    "name": "--hold-executables",
    "about": "leave in the delta what ! marks"
   },
   {
    "name": "--dry-run",
    "about": "say what would happen, and change nothing"
   },
   {
    "name": "--json",
    "about": "{ dryRun, changes } instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "file"
 },
 {
  "name": "discard",
  "summary": "throw away changes of a kept delta",
  "options": [
   {
    "name": "--delta",
    "about": "the directory given to run or mount as --delta",
    "value": {
     "name": "DELTA",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--all",
    "about": "everything"
   },
   {
    "name": "--json",
    "about": "{ discarded"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "init",
  "summary": "write a policy for a project, .agentfense.yaml, from what is in it",
  "options": [
   {
    "name": "--for",
    "about": "what agents are to do here",
    "value": {
     "name": "PURPOSE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--preset",
    "about": "the rules to begin with instead",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--force",
    "about": "replace a .agentfense.yaml that is there already"
   },
   {
    "name": "--stdout",
    "about": "print it and write nothing"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "policy explain",
  "summary": "which rule decides about a path, and which ones lost",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--json",
    "about": "one JSON array instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "file"
 },
 {
  "name": "policy learn",
  "summary": "run a command with everything visible, and print the least rules for it",
  "options": [
   {
    "name": "--record",
    "about": "write what was looked at, read and written here, for policy simulate",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--network",
    "about": "none",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": true
    }
   },
   {
    "name": "--env",
    "about": "a variable for the command",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--home",
    "about": "keep the home",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--runtime",
    "about": "bwrap",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--image",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--toolchains",
    "about": "bwrap",
    "value": {
     "name": "WHICH",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "{ exitCode, rules, secrets } instead of the YAML"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "policy lint",
  "summary": "secrets that stay visible, rules that match nothing",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--all",
    "about": "remarks too, not only warnings"
   },
   {
    "name": "--json",
    "about": "one JSON array instead, of warnings and remarks"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "policy simulate",
  "summary": "what rules would have refused of what was done",
  "options": [
   {
    "name": "--against",
    "about": "the file",
    "value": {
     "name": "AUDIT",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "{ operations, refused"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "policy tree",
  "summary": "a directory as an agent would see it, with the level of each path",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--no-policy",
    "about": "take no notice of .agentfense.yaml"
   },
   {
    "name": "--all",
    "about": "also what is hidden"
   },
   {
    "name": "--depth",
    "about": "how many levels of directories",
    "value": {
     "name": "N",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "one JSON array of { path, type, level, rule, visible }"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "serve",
  "summary": "the server: codebases, sandboxes and sessions over gRPC and REST",
  "options": [
   {
    "name": "--config",
    "about": "settings in YAML",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--set",
    "about": "any setting by its name, such as --set server.tls.cert_file=…",
    "value": {
     "name": "KEY=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--grpc-addr",
    "about": "where gRPC listens",
    "value": {
     "name": "ADDRESS",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--http-addr",
    "about": "where REST listens",
    "value": {
     "name": "ADDRESS",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--metrics-addr",
    "about": "a listener of its own for /metrics",
    "value": {
     "name": "ADDRESS",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--codebase-path",
    "about": "where codebases are kept",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--mount-path",
    "about": "where the changes of sandboxes are kept",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--db-path",
    "about": "the database",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--runtime",
    "about": "bwrap",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--log-level",
    "about": "debug, info",
    "value": {
     "name": "LEVEL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--log-format",
    "about": "text",
    "value": {
     "name": "FORMAT",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--private",
    "about": "a server for the program that starts it"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "config print",
  "summary": "every setting of the server, and where its value comes from",
  "options": [
   {
    "name": "--config",
    "about": "settings in YAML",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--set",
    "about": "any setting by its name, such as --set server.tls.cert_file=…",
    "value": {
     "name": "KEY=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--grpc-addr",
    "about": "where gRPC listens",
    "value": {
     "name": "ADDRESS",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--http-addr",
    "about": "where REST listens",
    "value": {
     "name": "ADDRESS",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--metrics-addr",
    "about": "a listener of its own for /metrics",
    "value": {
     "name": "ADDRESS",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--codebase-path",
    "about": "where codebases are kept",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--mount-path",
    "about": "where the changes of sandboxes are kept",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--db-path",
    "about": "the database",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--runtime",
    "about": "bwrap",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--log-level",
    "about": "debug, info",
    "value": {
     "name": "LEVEL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--log-format",
    "about": "text",
    "value": {
     "name": "FORMAT",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "a list of { name, value, origin, description, variable, default } instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "key create",
  "summary": "make an API key",
  "options": [
   {
    "name": "--owner",
    "about": "whose codebases and sandboxes the key opens",
    "value": {
     "name": "OWNER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--role",
    "about": "user",
    "value": {
     "name": "ROLE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--name",
    "about": "to tell it from others",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--config",
    "about": "the server's settings",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "{ key, secret } instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "key list",
  "summary": "the API keys, without their secrets",
  "options": [
   {
    "name": "--config",
    "about": "the server's settings",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "a list of { id, ownerId, role, name, createdAt, revokedAt, lastUsedAt } instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "key revoke",
  "summary": "end an API key",
  "options": [
   {
    "name": "--config",
    "about": "the server's settings",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "{} instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "audit list",
  "summary": "events of the audit log",
  "options": [
   {
    "name": "--sandbox",
    "about": "only about this sandbox",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--codebase",
    "about": "only about this codebase",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--owner",
    "about": "only about this owner's",
    "value": {
     "name": "OWNER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--type",
    "about": "only of this type, such as permission_denied",
    "value": {
     "name": "TYPE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--since",
    "about": "from 2026-02-03T10",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--until",
    "about": "before that",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--follow",
    "about": "then what happens, until interrupted"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "audit watch",
  "summary": "events of the audit log as they happen",
  "options": [
   {
    "name": "--sandbox",
    "about": "only about this sandbox",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--codebase",
    "about": "only about this codebase",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--owner",
    "about": "only about this owner's",
    "value": {
     "name": "OWNER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--type",
    "about": "only of this type, such as permission_denied",
    "value": {
     "name": "TYPE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--after",
    "about": "begin after the event with this number instead of with what happens next",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "audit verify",
  "summary": "whether the stored audit log is whole",
  "options": [
   {
    "name": "--config",
    "about": "settings in YAML",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--set",
    "about": "any setting by its name, such as --set server.tls.cert_file=…",
    "value": {
     "name": "KEY=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "{ ok, events } or { ok, sequence, reason } instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase create",
  "summary": "make an empty codebase",
  "options": [
   {
    "name": "--owner",
    "about": "whose it is",
    "value": {
     "name": "OWNER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase upload",
  "summary": "upload a directory; only what the server lacks is sent",
  "options": [
   {
    "name": "--codebase",
    "about": "into this one",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--name",
    "about": "of a new codebase",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--owner",
    "about": "of a new codebase",
    "value": {
     "name": "OWNER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--delete",
    "about": "remove from the codebase what DIR does not have"
   },
   {
    "name": "--message",
    "about": "kept with the version",
    "value": {
     "name": "TEXT",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--base-version",
    "about": "only if the codebase is still at version N",
    "value": {
     "name": "N",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--no-ignore",
    "about": "take no notice of the ignore files"
   },
   {
    "name": "--include-git",
    "about": ".git too"
   },
   {
    "name": "--skip-unreadable",
    "about": "leave out what cannot be read"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "directory"
 },
 {
  "name": "codebase list",
  "summary": "codebases with their sizes and versions",
  "options": [
   {
    "name": "--owner",
    "about": "only this owner's",
    "value": {
     "name": "OWNER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase show",
  "summary": "one codebase",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase files",
  "summary": "files of a codebase",
  "options": [
   {
    "name": "-r",
    "about": "with all that is below"
   },
   {
    "name": "--recursive",
    "about": "with all that is below"
   },
   {
    "name": "--version",
    "about": "as it was at version N",
    "value": {
     "name": "N",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase download",
  "summary": "a file of a codebase, or all of it as an archive",
  "options": [
   {
    "name": "--archive",
    "about": "a tar archive of a directory instead of a file"
   },
   {
    "name": "--version",
    "about": "as it was at version N",
    "value": {
     "name": "N",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "-o",
    "about": "into this file instead of stdout",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--output",
    "about": "into this file instead of stdout",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase versions",
  "summary": "versions of a codebase, and what each changed",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase rollback",
  "summary": "a new version with the content of an old one",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase rename",
  "summary": "rename a file of a codebase",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase rm",
  "summary": "delete a file of a codebase",
  "options": [
   {
    "name": "-r",
    "about": "a directory with all that is below"
   },
   {
    "name": "--recursive",
    "about": "a directory with all that is below"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "codebase delete",
  "summary": "delete a codebase with all its versions",
  "options": [
   {
    "name": "--force",
    "about": "destroy those sandboxes too"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox create",
  "summary": "make a sandbox on a codebase",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--revocable",
    "about": "later rule changes reach files that are already open"
   },
   {
    "name": "--start",
    "about": "start it at once"
   },
   {
    "name": "--version",
    "about": "on version N of the codebase",
    "value": {
     "name": "N",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--sync",
    "about": "when changes go to the codebase",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--runtime",
    "about": "bwrap or docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--image",
    "about": "docker",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--network",
    "about": "none",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--allow",
    "about": "HOST["
   },
   {
    "name": "--allow-preset",
    "about": "the same for the hosts of npm, pypi, github …",
    "value": {
     "name": "LIST",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable for every command",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--home",
    "about": "a home",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--label",
    "about": "kept with it",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--idle-pause",
    "about": "pause it when nothing was asked of it for 10m …, until the next command",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--expires",
    "about": "destroy it after 30m, 24h …",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--memory",
    "about": "512m, 1g …",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--cpus",
    "about": "0.5, 2 …",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--pids",
    "about": "processes and threads together",
    "value": {
     "name": "NUMBER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--disk",
    "about": "the most the changes and the home may take together",
    "value": {
     "name": "SIZE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox list",
  "summary": "sandboxes and their states",
  "options": [
   {
    "name": "--codebase",
    "about": "only those on this codebase",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--owner",
    "about": "only this owner's",
    "value": {
     "name": "OWNER",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--status",
    "about": "only pending, running, stopped or error",
    "value": {
     "name": "STATUS",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--label",
    "about": "only those with this label",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox show",
  "summary": "everything about one sandbox",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox start",
  "summary": "make a sandbox ready for commands",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox stop",
  "summary": "end everything that runs in a sandbox",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox pause",
  "summary": "hold everything in a sandbox still",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox resume",
  "summary": "let a paused sandbox go on",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox destroy",
  "summary": "end sandboxes and throw away their changes",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox exec",
  "summary": "run a command in a sandbox",
  "options": [
   {
    "name": "--timeout",
    "about": "kill it after 30s, 10m …",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--workdir",
    "about": "where to start, absolute or relative to the workspace",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox spawn",
  "summary": "start a process in a sandbox that stays",
  "options": [
   {
    "name": "--tag",
    "about": "another name for it, for attach and kill",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--input",
    "about": "keep an input open for \"sandbox attach --input\""
   },
   {
    "name": "--terminal",
    "about": "run it on a terminal of its own, for \"sandbox attach --terminal\""
   },
   {
    "name": "--timeout",
    "about": "kill it with all that it started after 30s, 10m …",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--workdir",
    "about": "where to start, absolute or relative to the workspace",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox ps",
  "summary": "what runs in a sandbox",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox attach",
  "summary": "the output of a process in a sandbox, as it comes",
  "options": [
   {
    "name": "--input",
    "about": "pass on the input from here"
   },
   {
    "name": "--terminal",
    "about": "for a process on a terminal of its own"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox kill",
  "summary": "send a signal to a process in a sandbox",
  "options": [
   {
    "name": "--signal",
    "about": "TERM, SIGINT, 9 …",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox forward",
  "summary": "reach a port of a sandbox at one of this machine",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox ls",
  "summary": "a directory as the sandbox sees it",
  "options": [
   {
    "name": "-r",
    "about": "with all that is below"
   },
   {
    "name": "--recursive",
    "about": "with all that is below"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox read",
  "summary": "a file as the sandbox sees it",
  "options": [
   {
    "name": "-o",
    "about": "into this file instead of stdout",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--output",
    "about": "into this file instead of stdout",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox write",
  "summary": "write a file of a sandbox, as far as its rules allow",
  "options": [
   {
    "name": "--append",
    "about": "after what is there"
   },
   {
    "name": "--mode",
    "about": "permission bits of a new file, in octal",
    "value": {
     "name": "MODE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "file"
 },
 {
  "name": "sandbox changes",
  "summary": "what a sandbox changed",
  "options": [
   {
    "name": "--all",
    "about": "every change, in path order"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox diff",
  "summary": "what a sandbox changed, as a unified diff",
  "options": [
   {
    "name": "--raw",
    "about": "a patch, as git diff --binary has it, for git apply"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox apply",
  "summary": "write a sandbox's changes into its codebase",
  "options": [
   {
    "name": "--hold-executables",
    "about": "leave what ! marks in the sandbox"
   },
   {
    "name": "--dry-run",
    "about": "say what would happen, and change nothing"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox discard",
  "summary": "throw away changes of a sandbox",
  "options": [
   {
    "name": "--all",
    "about": "everything it changed"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox permissions",
  "summary": "the rules of a sandbox, or new ones",
  "options": [
   {
    "name": "--preset",
    "about": "one of these",
    "value": {
     "name": "NAME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--rules",
    "about": "a JSON or YAML list of { pattern, permission, type?, priority? }",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox network",
  "summary": "the hosts that a sandbox may reach, or others",
  "options": [
   {
    "name": "--allow",
    "about": "HOST["
   },
   {
    "name": "--allow-preset",
    "about": "the same for the hosts of npm, pypi, github …",
    "value": {
     "name": "LIST",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--none",
    "about": "an empty list"
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "sandbox explain",
  "summary": "which rule decides about a path in a sandbox",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "session create",
  "summary": "open a shell in a sandbox that stays",
  "options": [
   {
    "name": "--shell",
    "about": "bash, sh, dash or zsh",
    "value": {
     "name": "SHELL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--env",
    "about": "a variable",
    "value": {
     "name": "NAME=VALUE",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--workdir",
    "about": "where to start, absolute or relative to the workspace",
    "value": {
     "name": "DIR",
     "kind": "directory",
     "optional": false
    }
   },
   {
    "name": "--idle-timeout",
    "about": "close it when nothing was asked of it for 10m, 2h …",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "session list",
  "summary": "sessions of a sandbox",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "session exec",
  "summary": "run a line in the shell of a session",
  "options": [
   {
    "name": "--timeout",
    "about": "interrupt it after 30s, 10m …",
    "value": {
     "name": "TIME",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "session destroy",
  "summary": "close a session",
  "options": [
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "home list",
  "summary": "homes that outlive sandboxes",
  "options": [
   {
    "name": "--owner",
    "about": "administrators",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "home delete",
  "summary": "remove a home that outlives sandboxes",
  "options": [
   {
    "name": "--owner",
    "about": "administrators",
    "value": {
     "name": "ID",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--endpoint",
    "about": "the server",
    "value": {
     "name": "URL",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--api-key",
    "about": "better in AGENTFENSE_API_KEY",
    "value": {
     "name": "KEY",
     "kind": "other",
     "optional": false
    }
   },
   {
    "name": "--ca",
    "about": "certificates",
    "value": {
     "name": "FILE",
     "kind": "file",
     "optional": false
    }
   },
   {
    "name": "--json",
    "about": "JSON instead"
   },
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other"
 },
 {
  "name": "completion",
  "summary": "a script that completes commands and options in your shell: bash, zsh or fish",
  "options": [
   {
    "name": "-h",
    "about": "this text"
   },
   {
    "name": "--help",
    "about": "this text"
   }
  ],
  "takes": "other",
  "words": [
   "bash",
   "zsh",
   "fish"
  ]
 }
];
