import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chown, cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe } from "vitest";
import { type As, identityOf, reasonAgainst } from "../../../test/support/identity.ts";
import { type Surroundings, scratch } from "./run-cli.ts";

/** Runs a suite as root and as the ordinary user; one that this machine cannot provide is skipped and says why. */
export function describeForBoth(title: string, suite: (as: As) => void): void {
  for (const as of ["root", "user"] as const) {
    const reason = reasonAgainst(as);
    const name = `${title}, as ${as === "root" ? "root" : "an ordinary user"}`;
    describe.skipIf(reason !== undefined)(reason === undefined ? name : `${name} (skipped: ${reason})`, () =>
      suite(as),
    );
  }
}

export interface Places {
  /** A copy of the example project, at `project` below `cwd`. */
  readonly cwd: string;
  /** For temporary files, and for nothing else. */
  readonly temporary: string;
  readonly surroundings: Surroundings;
}

export async function places(as: As): Promise<Places> {
  const identity = identityOf(as);
  const [cwd, temporary, runtime] = [await scratch(), await scratch(), await scratch()];
  await cp(join(import.meta.dirname, "../../../examples/project"), join(cwd, "project"), { recursive: true });
  for (const path of [cwd, temporary, runtime]) await chown(path, identity.uid, identity.gid);
  for (const entry of await readdir(cwd, { recursive: true }))
    await chown(join(cwd, entry), identity.uid, identity.gid);
  return { cwd, temporary, surroundings: { cwd, identity, env: { TMPDIR: temporary, XDG_RUNTIME_DIR: runtime } } };
}

/** Where a running command line keeps its mounts: the directory of the lock it holds. */
export function instanceOf(pid: number): string | undefined {
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
      if (/\/[0-9a-f]{16}\/lock$/.test(path)) return path.slice(0, -"/lock".length);
    } catch {
      // Closed in the meantime.
    }
  }
  return undefined;
}

export function isMountedBelow(directory: string): boolean {
  return readFileSync("/proc/self/mountinfo", "utf8").includes(` ${directory}/`);
}
