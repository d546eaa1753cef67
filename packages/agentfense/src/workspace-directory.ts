import { realpath, stat } from "node:fs/promises";
import { UsageError } from "./command-failure.ts";
import { printable } from "./terminal.ts";

/** The real path of a directory that has to exist. `name` is what the usage calls it. */
export async function resolveDirectory(path: string, name = "DIR"): Promise<string> {
  const entry = await stat(path).catch((error: NodeJS.ErrnoException) => error);
  if (entry instanceof Error) {
    const reason = entry.code === "ENOENT" ? "does not exist" : `cannot be used (${entry.code})`;
    throw new UsageError(`${name} ${reason}: ${printable(path)}`);
  }
  if (!entry.isDirectory()) throw new UsageError(`${name} is not a directory: ${printable(path)}`);
  return await realpath(path);
}
