import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { CommandFailure } from "../failure.ts";
import { printable } from "../terminal.ts";

/** Makes a new file; what is there already, a link too, stays unless it may be replaced, and is never written through. */
export async function writeNewFile(
  path: string,
  text: string,
  { replace }: { readonly replace: boolean },
): Promise<void> {
  try {
    if (!replace) await writeFile(path, text, { flag: "wx" });
    else await replaceFile(path, text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") {
      throw new CommandFailure(`${printable(path)} is there already`, {
        hint: "--force replaces it, --stdout only shows the new one",
      });
    }
    throw new CommandFailure(`cannot write ${printable(path)}: ${message}`);
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  try {
    await writeFile(temporary, text, { flag: "wx" });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
