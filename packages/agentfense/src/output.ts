import { printableSentence } from "./terminal.ts";

/**
 * Writes to stdout no faster than it is read, so that a big tree never piles up in memory. What cannot be written is told to
 * whoever listens to errors of stdout.
 */
export async function print(text: string): Promise<void> {
  await new Promise<void>((resolve) => process.stdout.write(text, () => resolve()));
}

/** What is said of output that the system does not take. */
export const UNWRITTEN = "what is printed here cannot be written";

/** Something that the user should know and that is no part of the answer. */
export function warn(sentence: string): void {
  process.stderr.write(`agentfense: ${printableSentence(sentence)}\n`);
}

/** Why something did not work, and what to do about it, each line of that as a hint of its own. */
export function complain(message: string, hint: string | undefined): void {
  const [first = "", ...more] = message.split("\n").map(printableSentence);
  const hints = hint === undefined ? [] : hint.split("\n").map((line) => `hint: ${printableSentence(line)}`);
  process.stderr.write(`${[`agentfense: ${first}`, ...more, ...hints].join("\n")}\n`);
}

/** For programs. */
export async function printJson(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** One object a line, for answers that have no end. */
export async function printJsonLine(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value)}\n`);
}
