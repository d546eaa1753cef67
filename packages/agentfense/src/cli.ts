#!/usr/bin/env node
import manifest from "../package.json" with { type: "json" };
import { type Command, CommandFailure, type ExitCode, UsageError } from "./command.ts";
import { printable, printableSentence } from "./terminal.ts";

/** Commands load when they are called: `policy` needs no engine, and help needs nothing. */
const COMMANDS: Readonly<Record<string, { readonly summary: string; readonly load: () => Promise<Command> }>> = {
  run: {
    summary: "run a command on a directory in a sandbox, and list what it changed",
    load: async () => (await import("./commands/run.ts")).run,
  },
  shell: {
    summary: "an interactive shell on a directory in a sandbox",
    load: async () => (await import("./commands/shell.ts")).shell,
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
  "policy explain": {
    summary: "which rule decides about a path, and which ones lost",
    load: async () => (await import("./commands/policy-explain.ts")).policyExplain,
  },
  "policy lint": {
    summary: "secrets that stay visible, rules that match nothing",
    load: async () => (await import("./commands/policy-lint.ts")).policyLint,
  },
  "policy tree": {
    summary: "a directory as an agent would see it, with the level of each path",
    load: async () => (await import("./commands/policy-tree.ts")).policyTree,
  },
};

const HELP = `Usage: agentfense COMMAND [OPTIONS] …

Runs an untrusted agent against a real codebase with least privilege per file.

Commands:
${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}`)
  .join("\n")}

Options:
  -h, --help      this text; after a command, the help of that command
  -V, --version   the version

Exit codes: 0 done, 1 it did not work (or the answer is no), 2 the command was given wrongly. run and shell end with the
code of what they ran.
`;

// A reader that has seen enough (`| head`) is no error of ours.
process.stdout.on("error", leaveWithReader);

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const [first = "--help", second = ""] = args;
  if (first === "--help" || first === "-h" || first === "help") {
    process.stdout.write(HELP);
    return 0;
  }
  if (first === "--version" || first === "-V") {
    process.stdout.write(`${manifest.version}\n`);
    return 0;
  }

  const family = Object.keys(COMMANDS).filter((name) => name.startsWith(`${first} `));
  if (family.length > 0 && (second === "--help" || second === "-h")) {
    process.stdout.write(HELP);
    return 0;
  }

  const name = [`${first} ${second}`, first].find((candidate) => Object.hasOwn(COMMANDS, candidate));
  if (name === undefined) return complain(unknownCommand(first, second), "agentfense --help");

  const rest = args.slice(name.split(" ").length);
  try {
    const command = await COMMANDS[name]!.load();
    const beforeSeparator = rest.includes("--") ? rest.slice(0, rest.indexOf("--")) : rest;
    if (beforeSeparator.some((argument) => argument === "--help" || argument === "-h")) {
      process.stdout.write(command.help);
      return 0;
    }
    if (command.handlesClosedOutput) process.stdout.off("error", leaveWithReader);
    return await command.run(rest);
  } catch (error) {
    if (error instanceof UsageError) return complain(error.message, `agentfense ${name} --help`);
    if (!(error instanceof CommandFailure)) throw error;
    process.stderr.write(`agentfense: ${printableLines(error.message)}\n`);
    return error.exitCode;
  }
}

function leaveWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
}

function unknownCommand(first: string, second: string): string {
  if (first.startsWith("-")) return `unknown option ${printable(first)}`;
  const family = Object.keys(COMMANDS).filter((name) => name.startsWith(`${first} `));
  if (family.length === 0) return `unknown command ${printable(first)}; there are: ${Object.keys(COMMANDS).join(", ")}`;
  const got =
    second === "" || second.startsWith("-")
      ? `${first} needs a subcommand`
      : `unknown command ${first} ${printable(second)}`;
  return `${got}; there are: ${family.join(", ")}`;
}

function complain(message: string, tryThis: string): ExitCode {
  process.stderr.write(`agentfense: ${printableLines(message)}\nTry: ${tryThis}\n`);
  return 2;
}

/** Our own messages may have several lines. */
function printableLines(message: string): string {
  return message.split("\n").map(printableSentence).join("\n");
}
