import { tmpdir } from "node:os";
import manifest from "../package.json" with { type: "json" };
import { CommandFailure, UsageError } from "./command.ts";
import { type Found, findCommand } from "./help/find.ts";
import { familyHelp, membersOf, overview } from "./help/overview.ts";
import { complain } from "./output.ts";

// A reader that has seen enough (`| head`) is no error of ours.
process.stdout.on("error", leaveWithReader);

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const [first = "--help"] = args;
  if (first === "--help" || first === "-h") return tell(overview());
  if (first === "--version" || first === "-V") return tell(`${manifest.version}\n`);

  let found: Found | undefined;
  try {
    if (first === "help") return await tellAbout(args.slice(1));
    found = findCommand(args);
    return await carryOut(found, args.slice(found.words));
  } catch (error) {
    if (error instanceof UsageError) {
      complain(error.message, await hintFor(error, found));
      return 2;
    }
    if (isFull(error)) {
      complain("no space is left on a disk", `if it is that of ${tmpdir()}: free some there, or set TMPDIR`);
      return 125;
    }
    if (!(error instanceof CommandFailure)) throw error;
    complain(error.message, error.hint);
    return error.exitCode;
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

async function carryOut(found: Found, rest: readonly string[]): Promise<number> {
  const own = rest.includes("--") ? rest.slice(0, rest.indexOf("--")) : rest;
  const asksForHelp = own.some((argument) => argument === "--help" || argument === "-h");
  if (found.kind === "family") {
    if (asksForHelp) return tell(familyHelp(found.name));
    throw new UsageError(`${found.name} needs a subcommand; there are: ${membersOf(found.name).join(", ")}`);
  }
  const command = await found.load();
  if (asksForHelp) return tell(command.help);
  if (command.handlesClosedOutput) process.stdout.off("error", leaveWithReader);
  return await command.run(rest);
}

/** `agentfense help`, and with a command or a family of them, theirs. */
async function tellAbout(words: readonly string[]): Promise<number> {
  if (words.length === 0 || words[0] === "--help" || words[0] === "-h") return tell(overview());
  const found = findCommand(words);
  if (found.words < words.length) throw new UsageError("help takes one command");
  return tell(found.kind === "family" ? familyHelp(found.name) : (await found.load()).help);
}

/** What to do about a command that was given wrongly: what was meant, if that can be guessed, else where to read on. */
async function hintFor({ hint, slip }: UsageError, found: Found | undefined): Promise<string> {
  const readOn = `agentfense ${found === undefined ? "" : `${found.name} `}--help`;
  if (slip === undefined) return hint ?? readOn;
  // Loaded only here, so that what goes well does not wait for it.
  const { nearestName } = await import("@agentfense/sdk/project");
  const near = nearestName(slip.given, slip.known);
  return near === undefined ? readOn : `did you mean ${near}?`;
}

function tell(text: string): number {
  process.stdout.write(text);
  return 0;
}

function leaveWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
}
