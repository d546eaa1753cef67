import { access, constants } from "node:fs/promises";
import { IsolationError } from "./isolation-error.ts";

const PLACES = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/** Nothing stands in for it (docs/decisions/40-perl.md), so whoever lacks it is told its name everywhere. */
export const PERL_PACKAGE = "perl (Alpine, Arch), perl-interpreter (Fedora) or perl-base (Debian, Ubuntu)";

/** A program of the host by absolute path, looked for in the system's own places and not in somebody's PATH. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const place of PLACES) {
    const path = `${place}/${name}`;
    if (await isAccessible(path, constants.X_OK)) return path;
  }
  return undefined;
}

/** The same of what cannot be done without: `need` is by whom, as in "a private network needs". */
export async function requireProgram(name: string, packageName: string, need: string): Promise<string> {
  const path = await findProgram(name);
  if (path === undefined) throw missingProgram(name, packageName, need);
  return path;
}

export function missingProgram(name: string, packageName: string, need: string, cause?: unknown): IsolationError {
  return new IsolationError("RUNTIME_UNAVAILABLE", `${need} ${name}, which this host does not have`, {
    hint: `install the package ${packageName}`,
    cause,
  });
}

/** To this process, in this way; without one: whether it is there. */
export function isAccessible(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
