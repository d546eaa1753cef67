import { SandboxError } from "../backend/errors.ts";
import type { ExecRequest } from "./api.ts";

// What a caller may ask for, checked by shape before anything happens. All of it acts inside the box only; what must not
// happen is that a string means something to bwrap, the engine or the kernel that it does not mean to its writer.

export interface TimeLimits {
  /** Of a command that names none; absent: it has no limit. */
  readonly defaultTimeoutMs?: number | undefined;
  /** The longest that a command may ask for; absent: as long as it likes. */
  readonly maxTimeoutMs?: number | undefined;
  /** The words of whoever can raise the maximum: "runtime.max_timeout". */
  readonly maxTimeoutSetting?: string | undefined;
}

/** A timer cannot run longer; who asks for more gets no timer at all. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The kernel takes no single argument or variable longer than this (MAX_ARG_STRLEN, with its NUL). */
const MAX_STRING_BYTES = 128 * 1024 - 1;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
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
    const hint = maxTimeoutSetting === undefined ? {} : { hint: `${maxTimeoutSetting} raises that` };
    throw new SandboxError("INVALID_ARGUMENT", `timeout is at most ${maxTimeoutMs / 1000} s`, hint);
  }
  const effective = timeoutMs ?? defaultTimeoutMs;
  return effective !== undefined && effective <= LONGEST_TIMER_MS ? effective : undefined;
}

export function checkEnvironment(env: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(env ?? {})) {
    if (!ENV_NAME.test(name)) throw invalid(`${JSON.stringify(name)} is not a name for an environment variable`);
    checkText(value, `the value of ${name}`);
  }
  return env ?? {};
}

/** The argv that runs the request: a line goes to the shell, a list is looked up on the PATH by the shell and replaces it. */
export function commandArguments(command: ExecRequest["command"], shell: string): [string, ...string[]] {
  if (typeof command === "string") {
    if (command.trim() === "") throw invalid("there is no command");
    checkText(command, "the command");
    return [shell, "-c", command];
  }
  if (command.length === 0 || command[0] === "") throw invalid("there is no command");
  // The shell's exec would take it for an option, and not every shell's exec knows "--".
  if (command[0]?.startsWith("-")) throw invalid("a program whose name begins with a dash is called by its path");
  for (const word of command) checkText(word, "an argument of the command");
  return [shell, "-c", 'exec "$@"', shell, ...command];
}

/** Where a relative directory starts is the workspace; what a path means is decided inside the box. */
export function workingDirectory(workdir: string | undefined, workspace: string): string {
  if (workdir === undefined || workdir === "") return workspace;
  checkText(workdir, "the working directory");
  return workdir.startsWith("/") ? workdir : `${workspace}/${workdir}`;
}

function checkText(text: string, what: string): void {
  if (text.includes("\0")) throw invalid(`${what} contains a NUL character`);
  if (Buffer.byteLength(text) > MAX_STRING_BYTES) {
    throw invalid(
      `${what} is longer than ${MAX_STRING_BYTES.toLocaleString("en")} bytes; pass it on stdin or in a file`,
    );
  }
}

function invalid(message: string): SandboxError {
  return new SandboxError("INVALID_ARGUMENT", message);
}
