import { type Command, UsageError } from "../command.ts";
import { COMMANDS } from "../commands.ts";
import { printable } from "../terminal.ts";
import { firstWords, membersOf } from "./overview.ts";

/** What the first words of a command line name, and how many words that took. */
export type Found =
  | { readonly kind: "command"; readonly name: string; readonly words: number; load(): Promise<Command> }
  | { readonly kind: "family"; readonly name: string; readonly words: number };

/** Finds the command, or else the family, or complains with what may have been meant. */
export function findCommand([first = "", second = ""]: readonly string[]): Found {
  const name = [`${first} ${second}`, first].find((candidate) => Object.hasOwn(COMMANDS, candidate));
  if (name !== undefined) {
    return { kind: "command", name, words: name.split(" ").length, load: COMMANDS[name]!.load };
  }
  const members = membersOf(first);
  if (members.length === 0) throw unknownWord(first);
  if (second === "" || second.startsWith("-")) return { kind: "family", name: first, words: 1 };
  throw new UsageError(`unknown command ${first} ${printable(second)}; there are: ${members.join(", ")}`, {
    slip: { given: `${first} ${second}`, known: members },
  });
}

function unknownWord(given: string): UsageError {
  if (given.startsWith("-")) {
    return new UsageError(`unknown option ${printable(given)}`, { slip: { given, known: ["--help", "--version"] } });
  }
  const known = firstWords();
  return new UsageError(`unknown command ${printable(given)}; there are: ${known.join(", ")}`, {
    slip: { given, known },
  });
}
