import { CommandFailure } from "../command.ts";
import { inputToPassOn } from "../run/streaming.ts";

/** A command's input travels in one message. */
const MOST_INPUT = 3 * 1_048_576;

/** What comes from a pipe or a file on stdin; undefined for a terminal. */
export async function readInput(): Promise<Uint8Array | undefined> {
  const input = inputToPassOn();
  if (input === undefined) return undefined;
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of input) {
    size += (piece as Buffer).length;
    if (size > MOST_INPUT) {
      throw new CommandFailure("more input than a command can be given (3 MiB)", {
        hint: "write it to a file of the sandbox first: agentfense sandbox write",
      });
    }
    pieces.push(piece as Buffer);
  }
  return Buffer.concat(pieces);
}
