import { VARIABLE_NAME } from "@agentfense/permission";
import { invalid } from "../backend/isolation-error.ts";
import type { ExecRequest } from "./api.ts";

// What a caller may ask for, checked by shape before anything happens. All of it acts inside the box only; what must not
// happen is that a string means something to bwrap, the engine or the kernel that it does not mean to its writer.

export interface TimeLimits {
  /** The time limit of a command that names none; absent: it has no limit. */
  readonly defaultTimeoutMs?: number | undefined;
  /** The longest that a command may ask for; absent: as long as it likes. */
  readonly maxTimeoutMs?: number | undefined;
  /** The words of whoever can raise the maximum: "runtime.max_timeout". */
  readonly maxTimeoutSetting?: string | undefined;
}

/** A timer cannot run longer; who asks for more gets no timer at all. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const LARGEST = { variables: 256, environmentBytes: 64 * 1024, workdirBytes: 4095 };
/** The kernel takes no single argument or variable longer than this (MAX_ARG_STRLEN, with its NUL). */
const LONGEST_STRING_BYTES = 128 * 1024 - 1;
const ID = /^[A-Za-z0-9_-]{1,64}$/;
const HOSTNAME = /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

export function checkId(id: string): string {
  if (!ID.test(id)) throw invalid("a sandbox id has 1 to 64 letters, digits, _ and - only");
  return id;
}

export function checkHostname(name: string): string {
  if (!HOSTNAME.test(name)) throw invalid("a host name has 1 to 63 letters, digits and hyphens");
  return name;
}

/** What a command is given; undefined: no limit. Asking for more than the maximum is an error, never less time than asked. */
export function effectiveTimeout(timeoutMs: number | undefined, limits: TimeLimits): number | undefined {
  const { defaultTimeoutMs, maxTimeoutMs = Number.POSITIVE_INFINITY, maxTimeoutSetting } = limits;
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw invalid("a timeout is a positive number of milliseconds");
  if (timeoutMs !== undefined && timeoutMs > maxTimeoutMs) {
    throw invalid(
      `timeout is at most ${maxTimeoutMs / 1000} s`,
      maxTimeoutSetting && `${maxTimeoutSetting} raises that`,
    );
  }
  const effective = timeoutMs ?? defaultTimeoutMs;
  return effective !== undefined && effective <= LONGEST_TIMER_MS ? effective : undefined;
}

/** What every command, session, terminal and process is asked for by. */
export interface StartTerms {
  readonly command?: ExecRequest["command"] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly workdir?: string | undefined;
}

export function checkStartTerms({ command, env, workdir }: StartTerms): void {
  if (command !== undefined) checkCommand(command);
  checkEnvironment(env);
  if (workdir?.includes("\0")) throw invalid("workdir contains a NUL character");
  if (Buffer.byteLength(workdir ?? "") > LARGEST.workdirBytes) {
    throw invalid(`workdir is longer than ${LARGEST.workdirBytes} bytes`);
  }
}

export function checkEnvironment(env: StartTerms["env"] = {}): void {
  const entries = Object.entries(env);
  if (entries.length > LARGEST.variables) throw invalid(`env has at most ${LARGEST.variables} variables`);
  let bytes = 0;
  for (const [name, value] of entries) {
    if (!VARIABLE_NAME.test(name)) {
      throw invalid(`${JSON.stringify(name.slice(0, 80))} is not a name for an environment variable`);
    }
    if (value.includes("\0")) throw invalid(`the value of ${name} contains a NUL character`);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > LARGEST.environmentBytes) throw invalid(`env is larger than ${LARGEST.environmentBytes} bytes`);
}

function checkCommand(command: ExecRequest["command"]): void {
  const words = typeof command === "string" ? [command] : command;
  if (words.length === 0 || words[0]!.trim() === "") throw invalid("command is required");
  // A shell finds the program; its exec would take such a name for an option, and not every shell's exec knows "--".
  if (typeof command !== "string" && words[0]!.startsWith("-")) {
    throw invalid("argv[0] begins with a dash", "call the program by its path, as in ./-name");
  }
  for (const word of words) {
    if (word.includes("\0")) throw invalid("command contains a NUL character");
    if (Buffer.byteLength(word) > LONGEST_STRING_BYTES) {
      throw invalid(`command is longer than ${LONGEST_STRING_BYTES} bytes`, "pass it on stdin or in a file");
    }
  }
}

/** The argv that runs a command: a line goes to the shell, a list is looked up on the PATH by the shell and replaces it. */
export function commandArguments(command: ExecRequest["command"], shell: string): [string, ...string[]] {
  return typeof command === "string" ? [shell, "-c", command] : [shell, "-c", 'exec "$@"', shell, ...command];
}

/** Where a relative directory starts is the workspace; what a path means is decided inside the box. */
export function workingDirectory(workdir: string | undefined, workspace: string): string {
  if (workdir === undefined || workdir === "") return workspace;
  return workdir.startsWith("/") ? workdir : `${workspace}/${workdir}`;
}
