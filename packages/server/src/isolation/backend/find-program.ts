import { access, constants } from "node:fs/promises";

const PLACES = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/** A program of the host by absolute path, looked for in the system's own places and not in somebody's PATH. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const place of PLACES) {
    const path = `${place}/${name}`;
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
