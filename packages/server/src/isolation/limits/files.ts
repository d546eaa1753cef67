import { closeSync, constants, openSync, writeSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";

/** Writes a control file. It is never created: a file that is missing is ENOENT, as it should be. */
export async function writeControl(path: string, value: string): Promise<void> {
  await writeFile(path, value, { flag: constants.O_WRONLY });
}

/** For a number that has to be there before the next step; it takes microseconds. Of a group that is gone it is not needed. */
export function writeControlNow(path: string, value: string): void {
  try {
    const file = openSync(path, constants.O_WRONLY);
    try {
      writeSync(file, value);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

export async function readControl(path: string): Promise<string> {
  return (await readFile(path, "utf8")).trimEnd();
}

/** As readControl, but undefined when the file or its group is gone. */
export async function readControlIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readControl(path);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** The words of a list such as cgroup.controllers. */
export function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

/** The number behind a key in a file of `key value` lines; undefined when the kernel has no such line. */
export function keyedNumber(text: string, key: string): number | undefined {
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${key} `));
  return line === undefined ? undefined : Number(line.slice(key.length + 1));
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** The group was removed: its path is gone (ENOENT), or a descriptor outlived it (ENODEV). */
export function isGone(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENODEV";
}

/** There are no descriptors left, or no memory for one. */
export function isShortage(error: unknown): boolean {
  return ["EMFILE", "ENFILE", "ENOMEM"].includes(errorCode(error) ?? "");
}
