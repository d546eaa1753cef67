import { once } from "node:events";
import { printableSentence } from "./terminal.ts";

/** Writes to stdout no faster than it is read, so that a big tree never piles up in memory. */
export async function print(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, "drain");
}

/** Something that the user should know and that is no part of the answer. */
export function warn(sentence: string): void {
  process.stderr.write(`agentfense: ${printableSentence(sentence)}\n`);
}
