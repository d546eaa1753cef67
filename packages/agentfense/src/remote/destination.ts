import { once } from "node:events";
import { open, rename, rm } from "node:fs/promises";
import { CommandFailure } from "../failure.ts";
import { option } from "../option.ts";
import { printable } from "../terminal.ts";

export const OUTPUT_FILE = option({
  name: "output",
  short: "o",
  value: "FILE",
  kind: "file",
  about: "into this file instead of stdout",
});

/** Writes a file to stdout, or to a new file that is only there when all of it arrived. Gives the exit code. */
export async function writeTo(path: string | undefined, content: AsyncIterable<Uint8Array>): Promise<number> {
  if (path === undefined || path === "-") {
    for await (const data of content) if (!process.stdout.write(data)) await once(process.stdout, "drain");
    return 0;
  }
  const temporary = `${path}.part-${process.pid}`;
  try {
    await using file = await open(temporary, "wx");
    for await (const data of content) await file.writeFile(data);
  } catch (error) {
    await rm(temporary, { force: true });
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new CommandFailure(`cannot write ${printable(path)}: ${(error as Error).message}`);
  }
  await rename(temporary, path);
  return 0;
}
