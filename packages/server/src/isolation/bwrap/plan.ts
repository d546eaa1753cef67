import { isAbsolute, normalize } from "node:path";
import { type BoxSpec, EMAIL, type NetworkMode } from "../backend/backend.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import type { TrustPlan } from "../network/trust.ts";
import { INSIDE } from "./identity.ts";
import { BoxDescriptor } from "./keeper.ts";
import type { ProcMasks, System } from "./system.ts";

const RUN_BYTES = 16 * 1024 * 1024;
const EMPTY_BYTES = 4096;

const ENVIRONMENT = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: INSIDE.home,
  USER: INSIDE.name,
  LOGNAME: INSIDE.name,
  EMAIL,
  LANG: "C.UTF-8",
  TERM: "xterm-256color",
};

/** What is done to a network from outside is done while bwrap waits. */
const WAITING = ["--block-fd", String(BoxDescriptor.block)];
const NETWORK_OPTIONS = {
  none: [],
  host: ["--share-net"],
  private: WAITING,
  filtered: WAITING,
} satisfies Record<NetworkMode, string[]>;

export interface BoxPlan {
  /** bwrap's. */
  readonly options: readonly string[];
  /** What every command of the box finds. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The box as bwrap's options. Later mounts cover earlier ones. Nothing that the box can write lies outside of a tmpfs
 * with a size or of the workspace and the home: the root and /dev, tmpfs too, become read-only at the end.
 */
export function boxPlan(options: {
  readonly spec: BoxSpec;
  readonly system: System;
  readonly masks: ProcMasks;
  /** What the keeper's interpreter needs and the system does not have. */
  readonly binds: readonly { readonly source: string; readonly target: string }[];
  /** Files to write, in the order of their descriptors. */
  readonly files: readonly string[];
  /** Files to lay over what the system has there, which follow with their descriptors. */
  readonly trust: TrustPlan | undefined;
  /** What all files in memory may take together, where no control group counts them. */
  readonly memoryForFiles: number | undefined;
}): BoxPlan {
  const { spec, system, masks, trust, memoryForFiles } = options;
  const firstLaid = BoxDescriptor.firstFile + options.files.length;
  const sizes = temporarySizes(spec.tmpBytes, memoryForFiles);
  return {
    options: [
      ...["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
      ...["--clearenv", "--setenv", "LD_BIND_NOW", "1"], // of the keeper alone: it forks for every command
      ...NETWORK_OPTIONS[spec.network],
      ...["--uid", String(INSIDE.uid), "--gid", String(INSIDE.gid), "--hostname", spec.hostname],
      ...["--seccomp", String(BoxDescriptor.seccomp)],

      // bwrap makes directories on the way to something with mode 0700; these would be such.
      ...["/etc", "/etc/ssl", "/etc/pki", "/var"]
        .filter((path) => isOwnDirectory(path, system))
        .flatMap((path) => ["--dir", path]),
      ...system.links.flatMap(({ target, path }) => ["--symlink", target, path]),
      ...system.binds.flatMap(({ source, target }) => ["--ro-bind", source, target]),
      ...options.files.flatMap((path, i) => ["--perms", "0644", "--file", String(BoxDescriptor.firstFile + i), path]),

      ...["--proc", "/proc"],
      ...masks.files.flatMap((path) => ["--ro-bind", "/dev/null", path]),
      ...masks.directories.flatMap((path) => privateDirectory(path, "0555", EMPTY_BYTES)),
      // /proc/sys, /proc/PID/mem, and /proc/PID/oom_score_adj, which an ordinary user's server cannot give a lower bound.
      ...["--remount-ro", "/proc"],

      ...["--dev", "/dev", ...privateDirectory("/dev/shm", "1777", sizes.shared)],
      // A shared mapping of /dev/zero is memory that no limit counts. /dev/full has the same zeros and cannot be mapped.
      ...(memoryForFiles === undefined ? [] : ["--dev-bind", "/dev/full", "/dev/zero"]),
      ...["--remount-ro", "/dev"],
      ...privateDirectory("/tmp", "1777", sizes.tmp),
      ...privateDirectory("/run", "0755", sizes.run),
      ...options.binds.flatMap(({ source, target }) => ["--ro-bind", source, target]),
      ...variableDirectories(system),

      ...Object.keys(trust?.files ?? {}).flatMap((path, i) => ["--ro-bind-data", String(firstLaid + i), path]),
      ...spec.readOnlyPaths.flatMap((path) => ["--ro-bind", path, path]),
      ...spec.mounts.flatMap(({ source, target }) => ["--bind", source, target]),
      ...["--remount-ro", "/"],
    ],
    env: {
      ...ENVIRONMENT,
      ...(system.shells[0] === undefined ? {} : { SHELL: system.shells[0] }),
      ...trust?.env,
      ...spec.env,
    },
  };
}

function temporarySizes(tmpBytes: number, together: number | undefined): Record<"tmp" | "shared" | "run", number> {
  const part = (share: number, most: number): number =>
    together === undefined ? most : Math.min(most, Math.floor(together * share));
  return {
    tmp: part(5 / 8, tmpBytes),
    shared: part(1 / 4, tmpBytes),
    run: part(1 / 8, RUN_BYTES),
  };
}

function privateDirectory(path: string, mode: string, bytes: number | string): string[] {
  return ["--perms", mode, "--size", String(bytes), "--tmpfs", path];
}

function isOwnDirectory(path: string, system: System): boolean {
  if (system.fixed.some((fixed) => isAtOrBelow(path, fixed))) return false;
  const places = [...system.binds.map((bind) => bind.target), ...Object.keys(system.files), "/etc/passwd", "/var/tmp"];
  return places.some((place) => place.startsWith(`${path}/`));
}

/** /var/tmp is /tmp: one more size to share out would serve nobody. */
function variableDirectories(system: System): string[] {
  if (system.fixed.includes("/var")) return [];
  return ["--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run", "--dir", "/var/log", "--dir", "/var/lib"];
}

/** Refused even as one path among others: they hold what a box must not see, whatever is in them today. */
const NEVER_BELOW = ["/proc", "/sys", "/dev"];
/** Refused as a whole; single entries below them are the operator's decision. */
const NEVER_WHOLE = ["/", "/boot", "/etc", "/home", "/root", "/run", "/tmp", "/var", "/var/lib", "/var/run"];

/** Whether a specification can be planned at all; says what is wrong with it otherwise. */
export function checkSpec(spec: BoxSpec): void {
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,62}[A-Za-z0-9])?$/.test(spec.hostname)) invalid("hostname", spec.hostname);
  if (!Number.isSafeInteger(spec.tmpBytes) || spec.tmpBytes < EMPTY_BYTES) invalid("tmpBytes", String(spec.tmpBytes));
  checkEnvironment(spec.env);
  for (const path of spec.readOnlyPaths) {
    if (!isPlainPath(path) || NEVER_WHOLE.includes(path) || NEVER_BELOW.some((top) => isAtOrBelow(path, top)))
      invalid("read-only path", path);
  }
  for (const { source, target } of spec.mounts) {
    if (!isPlainPath(source))
      throw new IsolationError("INVALID_ARGUMENT", `the mount for ${target} has no absolute source`);
    const isOwn = target === "/" || [...NEVER_BELOW, "/usr", "/etc"].some((top) => isAtOrBelow(target, top));
    if (!isPlainPath(target) || isOwn) invalid("mount target", target);
  }
  if (spec.rootDirectory !== undefined && (!isPlainPath(spec.rootDirectory) || spec.rootDirectory === "/"))
    invalid("root directory", spec.rootDirectory);
}

/** Names and values as the kernel can hand them on. */
export function checkEnvironment(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/.test(name)) invalid("name of a variable", name);
    if (value.includes("\0")) invalid("value of the variable", name);
  }
}

export function checkCommand(command: { readonly argv: readonly string[]; readonly workdir: string }): void {
  const [program] = command.argv;
  if (program === undefined || !isAbsolute(program)) invalid("program", program ?? "");
  if (command.argv.some((argument) => argument.includes("\0"))) invalid("argument", "with a NUL");
  if (!isAbsolute(command.workdir) || command.workdir.includes("\0")) invalid("working directory", command.workdir);
}

function isPlainPath(path: string): boolean {
  return isAbsolute(path) && !path.includes("\0") && normalize(path) === path && (path === "/" || !path.endsWith("/"));
}

function isAtOrBelow(path: string, top: string): boolean {
  return path === top || path.startsWith(`${top}/`);
}

function invalid(what: string, value: string): never {
  throw new IsolationError("INVALID_ARGUMENT", `this ${what} cannot be used: ${JSON.stringify(value)}`);
}
