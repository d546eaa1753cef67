import { constants } from "node:fs";
import { access, lstat, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { ExecutorError } from "../../errors.ts";

/** A program of this machine, and how it is shown in a box. */
export interface Program {
  readonly path: string;
  /** Its path in the box. */
  readonly inside: string;
  /** What a box shows for it besides the system's directories. */
  readonly shown: readonly { readonly source: string; readonly target: string }[];
}

/** Where programs are looked for; never in the workspace, and not where our own environment says. */
export const PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin";

/** What every box shows. Not /usr/local, /usr/share and their like: in root's box, code reads what only root may. */
export const SYSTEM_DIRECTORIES = [
  ...["/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64"],
  ...["/bin", "/lib", "/lib32", "/lib64"],
];

/** A program where the machine has it. From elsewhere than the system's directories, its libraries come with it. */
export async function systemProgram(name: string, hint: string): Promise<Program> {
  const path = await realpath(await findProgram(name, hint));
  if (SYSTEM_DIRECTORIES.some((directory) => path.startsWith(`${directory}/`)))
    return { path, inside: path, shown: [] };
  const libraries = join(dirname(dirname(path)), "lib");
  const places = [path, ...((await isDirectory(libraries)) ? [libraries] : [])];
  return { path, inside: path, shown: places.map((place) => ({ source: place, target: place })) };
}

/** The Node that runs us: its flags are known. Its place, which may be somebody's home, is not told inside. */
export async function ownNode(): Promise<Program> {
  const path = await realpath(process.execPath);
  return { path, inside: "/node", shown: [{ source: path, target: "/node" }] };
}

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

async function isDirectory(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() ?? false;
}
