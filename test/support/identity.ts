import { execFileSync } from "node:child_process";
import { accessSync, constants, readFileSync } from "node:fs";

/** Who runs a process: root, or the ordinary user made for these tests. */
export type As = "root" | "user";

export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

const TEST_USER = "agentfense-test";

/** The ids behind a name; makes the ordinary user when the machine has none yet. */
export function identityOf(as: As): Identity {
  if (as === "root") return { uid: 0, gid: 0 };
  const known = findUser(TEST_USER);
  if (known !== undefined) return known;
  try {
    execFileSync("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/bin/sh", TEST_USER], {
      stdio: "pipe",
    });
  } catch (error) {
    // Another test process may have been faster; only a user that is still missing is an error.
    if (findUser(TEST_USER) === undefined) throw error;
  }
  const made = findUser(TEST_USER);
  if (made === undefined) throw new Error(`useradd succeeded, but there is no user ${TEST_USER}`);
  return made;
}

/** Why tests cannot run as this identity on this machine; undefined when they can. */
export function reasonAgainst(as: As): string | undefined {
  if (process.getuid?.() !== 0) return "the tests need root to become another user";
  if (as === "root") return undefined;
  try {
    accessSync("/usr/bin/fusermount3", constants.X_OK);
  } catch {
    return "fusermount3 is not installed";
  }
  const identity = identityOf("user");
  try {
    execFileSync(process.execPath, ["--version"], { ...identity, stdio: "pipe", cwd: import.meta.dirname });
    execFileSync("/bin/cat", [import.meta.filename], { ...identity, stdio: "pipe" });
  } catch {
    return "the repository is not readable for an ordinary user";
  }
  return undefined;
}

function findUser(name: string): Identity | undefined {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(":") ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}
