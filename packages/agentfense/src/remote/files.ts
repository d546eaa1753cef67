import { once } from "node:events";
import { open, rename, rm } from "node:fs/promises";
import type { FileInfo } from "@agentfense/sdk";
import { CommandFailure } from "../command-failure.ts";
import { option } from "../option.ts";
import { tableText } from "../table.ts";
import { printable } from "../terminal.ts";
import { showSize, showTime } from "../wording.ts";

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

/** Files of a codebase or of a sandbox's view, one a line. */
export function filesTable(files: readonly FileInfo[]): string {
  const hasLevels = files.some(({ permission }) => permission !== undefined);
  return tableText(
    ["MODE", ...(hasLevels ? ["LEVEL"] : []), "SIZE", "MODIFIED", "PATH"],
    files.map(({ mode, permission = "", kind, size, modifiedAt, path, target }) => [
      mode.toString(8).padStart(4, "0"),
      ...(hasLevels ? [permission] : []),
      kind === "directory" ? "-" : showSize(size),
      showTime(modifiedAt),
      `${path}${kind === "directory" ? "/" : ""}${target === "" ? "" : ` -> ${target}`}`,
    ]),
    { right: ["SIZE"] },
  );
}
