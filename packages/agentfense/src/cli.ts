#!/usr/bin/env node
import manifest from "../package.json" with { type: "json" };
import { CommandFailure, type ExitCode, UsageError } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { printable, printableSentence } from "./terminal.ts";

const HELP = `Usage: agentfense COMMAND [OPTIONS] …

Runs an untrusted agent against a real codebase with least privilege per file.

Commands:
${listCommands(Object.keys(COMMANDS))}

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
    process.stdout.write(`Usage: agentfense ${first} COMMAND [OPTIONS] …\n\nCommands:\n${listCommands(family)}\n`);
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

function listCommands(names: readonly string[]): string {
  return names.map((name) => `  ${name.padEnd(21)}${COMMANDS[name]!.summary}`).join("\n");
}

function leaveWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
}

function unknownCommand(first: string, second: string): string {
  if (first.startsWith("-")) return `unknown option ${printable(first)}`;
  const family = Object.keys(COMMANDS).filter((name) => name.startsWith(`${first} `));
  if (family.length === 0) {
    const firstWords = new Set(Object.keys(COMMANDS).map((name) => name.split(" ")[0]));
    return `unknown command ${printable(first)}; there are: ${[...firstWords].join(", ")}`;
  }
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
