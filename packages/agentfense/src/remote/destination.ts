import { once } from "node:events";
import { open, rename, rm } from "node:fs/promises";
import { CommandFailure } from "../command.ts";
import { printable } from "../terminal.ts";

/** Writes the pieces of a file to stdout, or to a new file that is only there when all of it arrived. */
export async function writeTo(
  path: string | undefined,
  pieces: AsyncIterable<{ readonly data: Uint8Array }>,
): Promise<void> {
  if (path === undefined || path === "-") {
    for await (const { data } of pieces) {
      if (!process.stdout.write(data)) await once(process.stdout, "drain");
    }
    return;
  }
  const temporary = `${path}.part-${process.pid}`;
  try {
    await using file = await open(temporary, "wx");
    for await (const { data } of pieces) await file.writeFile(data);
  } catch (error) {
    await rm(temporary, { force: true });
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new CommandFailure(`cannot write ${printable(path)}: ${(error as Error).message}`);
  }
  await rename(temporary, path);
}
