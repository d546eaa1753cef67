import { invalid, SandboxError } from "../backend/errors.ts";
import { BASH, type Dialect, POSIX, ZSH } from "./dialects.ts";

/** How one shell is started, and how it is spoken to. */
export interface Shell {
  readonly path: string;
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Undefined when only the running program can tell which shell it is. */
  readonly dialect: Dialect | undefined;
}

// Every shell reads its commands from descriptor 0 (-s) and no start-up file: bash is kept from $BASH_ENV by an empty
// value, zsh from its files by -f. zsh is interactive, without editor and job control, because only then an error, a
// `return` or an interruption ends the command and not the shell.
const SHELLS: Readonly<Record<string, Omit<Shell, "path" | "argv"> & { readonly options: readonly string[] }>> = {
  bash: { options: ["--norc", "--noprofile", "-s"], env: { BASH_ENV: "" }, dialect: BASH },
  sh: { options: ["-s"], env: { BASH_ENV: "" }, dialect: undefined },
  dash: { options: ["-s"], env: {}, dialect: POSIX },
  zsh: { options: ["-f", "-i", "+m", "+Z", "-s"], env: {}, dialect: ZSH },
};

const NAMES = Object.keys(SHELLS).join(", ");

/** The dialect of a `sh`, by its own answer to `IDENTIFY`. */
export function dialectOf(answer: string): Dialect {
  return answer === "bash" ? BASH : POSIX;
}

/**
 * Finds the asked shell among those the box has (absolute paths). `NAME`, `/bin/NAME` and `/usr/bin/NAME` are the same
 * shell; nothing asked is the box's first one.
 */
export function findShell(asked: string | undefined, available: readonly string[]): Shell {
  const name = asked === undefined ? undefined : shellName(asked);
  const path = name === undefined ? available[0] : pick(name, asked!, available);
  if (path === undefined) {
    throw new SandboxError("PROGRAM_NOT_FOUND", `the sandbox has no ${name ?? "shell"}`, {
      hint: available.length > 0 ? `it has ${available.join(", ")}` : "use an image or a root directory with a shell",
    });
  }
  const { options, env, dialect } = SHELLS[baseName(path)] ?? SHELLS.sh!;
  return { path, argv: [path, ...options], env, dialect };
}

function shellName(asked: string): string {
  const name = /^(?:\/bin\/|\/usr\/bin\/)?([a-z]+)$/.exec(asked)?.[1];
  if (name !== undefined && Object.hasOwn(SHELLS, name)) return name;
  throw invalid(`not a shell for sessions: ${JSON.stringify(asked)}`, `use one of ${NAMES}`);
}

function pick(name: string, asked: string, available: readonly string[]): string | undefined {
  return available.includes(asked) ? asked : available.find((path) => baseName(path) === name);
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
