import { tmpdir } from "node:os";
import manifest from "../package.json" with { type: "json" };
import type { Command } from "./command.ts";
import { CommandFailure, UsageError } from "./command-failure.ts";
import { FAMILIES, GROUPS } from "./commands.ts";
import { complain, UNWRITTEN } from "./output.ts";
import { printable } from "./terminal.ts";

process.stdout.on("error", leaveWithOutput);

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const [first = "--help"] = args;
  if (first === "--version" || first === "-V") return tell(`${manifest.version}\n`);
  let found: Found | undefined;
  try {
    if (asksForHelp([first])) return tell((await import("./help.ts")).overview(GROUPS));
    if (first === "help") return await tellAbout(args.slice(1));
    found = await find(args);
    return await carryOut(found, args.slice(found.words));
  } catch (error) {
    if (error instanceof UsageError) {
      complain(error.message, await hintFor(error, found));
      return 2;
    }
    const lack = lackOf(error);
    if (lack !== undefined) {
      complain(lack.message, lack.hint);
      return 125;
    }
    if (!(error instanceof CommandFailure)) throw error;
    complain(error.message, error.hint);
    return error.exitCode;
  }
}

/** What this machine lacks, where an error of the system says no more than that: space, or a place for temporary files. */
function lackOf(error: unknown): { readonly message: string; readonly hint: string } | undefined {
  const { code, path = "" } = error as NodeJS.ErrnoException;
  const place = tmpdir();
  if (code === "ENOSPC" || code === "EDQUOT") {
    return { message: "no space is left on a disk", hint: `if it is that of ${place}: free some there, or set TMPDIR` };
  }
  if (code === undefined || !`${path}/`.startsWith(`${place}/`)) return undefined;
  return {
    message: `there is no place for temporary files in ${place} (${code})`,
    hint: "set TMPDIR to a directory in which you may write",
  };
}

/** What the first words of a command line name, and how many words that took. */
interface Found {
  readonly name: string;
  readonly words: number;
  /** Absent: a family of commands. */
  readonly command?: Command;
  readonly commands: readonly Command[];
}

/** Finds the command, or else the family, or complains with what may have been meant. */
async function find([first = "", second = ""]: readonly string[]): Promise<Found> {
  const family = Object.hasOwn(FAMILIES, first) ? FAMILIES[first] : undefined;
  if (family === undefined) throw unknownWord(first);
  const commands = await family.load();
  const command = commands.find(({ name }) => name === first || name === `${first} ${second}`);
  if (command !== undefined) return { name: command.name, words: command.name.split(" ").length, command, commands };
  if (second === "" || second.startsWith("-")) return { name: first, words: 1, commands };
  const members = commands.map(({ name }) => name);
  throw new UsageError(`unknown command ${first} ${printable(second)}; there are: ${members.join(", ")}`, {
    slip: { given: `${first} ${second}`, known: members },
  });
}

function unknownWord(given: string): UsageError {
  if (given.startsWith("-")) {
    return new UsageError(`unknown option ${printable(given)}`, {
      slip: { given, known: ["--help", "--version"] },
      hint: `options stand behind their command: agentfense COMMAND ${printable(given.split("=", 1)[0]!)} …`,
    });
  }
  const known = [...Object.keys(FAMILIES), "help"];
  return new UsageError(`unknown command ${printable(given)}; there are: ${known.join(", ")}`, {
    slip: { given, known },
  });
}

async function carryOut(found: Found, rest: readonly string[]): Promise<number> {
  if (asksForHelp(rest)) return await tellHelp(found);
  const { name, commands, command } = found;
  if (command === undefined) {
    throw new UsageError(`${name} needs a subcommand; there are: ${commands.map((each) => each.name).join(", ")}`);
  }
  if (command.handlesClosedOutput) process.stdout.off("error", leaveWithOutput);
  return await command.run(rest, FAMILIES);
}

/** What stands behind -- is somebody else's. */
function asksForHelp(args: readonly string[]): boolean {
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  return own.some((argument) => argument === "--help" || argument === "-h");
}

/** `agentfense help`, and with a command or a family of them, theirs. */
async function tellAbout(words: readonly string[]): Promise<number> {
  if (words.length === 0 || asksForHelp(words.slice(0, 1))) return tell((await import("./help.ts")).overview(GROUPS));
  const found = await find(words);
  if (found.words < words.length) throw new UsageError("help takes one command");
  return await tellHelp(found);
}

async function tellHelp({ name, command, commands }: Found): Promise<number> {
  const { commandHelp, familyHelp } = await import("./help.ts");
  return tell(command === undefined ? familyHelp(name, commands) : commandHelp(command));
}

/** What to do about a command that was given wrongly: what was meant, if that can be guessed, else where to read on. */
async function hintFor({ hint, slip }: UsageError, found: Found | undefined): Promise<string> {
  const readOn = `agentfense ${found === undefined ? "" : `${found.name} `}--help`;
  if (slip === undefined) return hint ?? readOn;
  // Loaded only here, so that what goes well does not wait for it.
  const { nearestName } = await import("@agentfense/sdk/project");
  const near = nearestName(slip.given, slip.known);
  return near === undefined ? (hint ?? readOn) : `did you mean ${near}?`;
}

function tell(text: string): number {
  process.stdout.write(text);
  return 0;
}

/** A reader that has seen enough (`| head`) is no error of ours; what cannot be written, to a full disk perhaps, is one. */
function leaveWithOutput(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(0);
  complain(`${UNWRITTEN} (${error.code})`, undefined);
  process.exit(1);
}
