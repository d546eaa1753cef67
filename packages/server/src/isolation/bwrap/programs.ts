import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { promisify } from "node:util";
import { isAccessible, missingProgram, PERL_PACKAGE, requireProgram } from "../backend/find-program.ts";
import { IsolationError } from "../backend/isolation-error.ts";

const run = promisify(execFile);
const TRIAL_TIMEOUT_MS = 10_000;
const NEED = "a box needs";

/** What the backend runs on the host, by absolute path: nothing is looked up in a PATH later. */
export interface HostPrograms {
  /** Runs the launcher here and the keeper in every box. */
  readonly perl: string;
  readonly bwrap: string;
  /** Only a root server needs it. */
  readonly setpriv: string | undefined;
}

export async function findPrograms(options: {
  isRoot: boolean;
  bwrapPath?: string | undefined;
}): Promise<HostPrograms> {
  if (options.bwrapPath !== undefined && !(await isAccessible(options.bwrapPath, constants.X_OK)))
    throw missingProgram("bwrap", "bubblewrap", NEED);
  return {
    perl: await requireProgram("perl", PERL_PACKAGE, NEED),
    bwrap: options.bwrapPath ?? (await requireProgram("bwrap", "bubblewrap", NEED)),
    setpriv: options.isRoot ? await requireProgram("setpriv", "util-linux", NEED) : undefined,
  };
}

/**
 * What a shell needs. Not the whole root: bwrap goes over every mount in it, and fails when one of another sandbox goes away
 * meanwhile.
 */
const TRIAL_DIRECTORIES = ["/usr", "/bin", "/lib", "/lib32", "/lib64", "/nix"];

/** Makes every namespace a box will need once, as the user a box will be, so that what this host forbids is known early. */
export async function tryBwrap(programs: HostPrograms, user: { uid: number; gid: number } | undefined): Promise<void> {
  const trial = [programs.bwrap, "--unshare-all", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"];
  trial.push(...TRIAL_DIRECTORIES.flatMap((path) => ["--ro-bind-try", path, path]));
  trial.push("--proc", "/proc", "--", "/bin/sh", "-c", ":");
  const become = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"];
  const [program, ...parameters] =
    user === undefined || programs.setpriv === undefined
      ? trial
      : [programs.setpriv, `--reuid=${user.uid}`, `--regid=${user.gid}`, ...become, ...trial];
  try {
    await run(program ?? "", parameters, { cwd: "/", env: {}, timeout: TRIAL_TIMEOUT_MS });
  } catch (error) {
    throw explain(error as Error & { code?: unknown; stderr?: string });
  }
}

function explain(error: Error & { code?: unknown; stderr?: string }): IsolationError {
  const text = `${error.stderr ?? ""}${error.message}`;
  if (error.code === "ENOENT" || error.code === "EACCES") return missingProgram("bwrap", "bubblewrap", NEED, error);
  const isBlocked = /namespace|uid map|loopback|Operation not permitted|Permission denied|No space left/.test(text);
  return new IsolationError("RUNTIME_UNAVAILABLE", "bubblewrap cannot make a box on this host", {
    hint: isBlocked
      ? "allow unprivileged user namespaces: sysctl user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 " +
        "kernel.apparmor_restrict_unprivileged_userns=0 (those this kernel knows), or an AppArmor profile for bwrap"
      : "run `bwrap --unshare-all --ro-bind / / true` to see why",
    cause: error,
  });
}
