import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { ExecutorError } from "../../errors.ts";

/** Where programs are looked for; never in the workspace, and not where our own environment says. */
export const PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin";

/** The path of a program, or a clear word that it is missing. */
export async function findProgram(name: string, hint: string): Promise<string> {
  const places = isAbsolute(name) ? [name] : PROGRAM_PATH.split(":").map((directory) => join(directory, name));
  for (const place of places) {
    try {
      await access(place, constants.X_OK);
      return place;
    } catch {
      // Perhaps in the next one.
    }
  }
  throw new ExecutorError("UNAVAILABLE", `${name} is not installed`, { hint });
}
