import { TIME_LIMITS } from "../commands/execution.ts";
import { Fault, invalid } from "../faults.ts";
import type { MockSandbox } from "./sandbox.ts";

// What callers may send, by shape.

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function checkEnvironment(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE_NAME.test(name)) throw invalid(`${JSON.stringify(name)} is not a name for an environment variable`);
    if (value.includes("\0")) throw invalid(`the value of ${name} contains a NUL character`);
  }
}

export function checkCommand(command: string | readonly string[]): void {
  const words = typeof command === "string" ? [command] : command;
  if ((words[0] ?? "").trim() === "") throw invalid("command is required");
  if (typeof command !== "string" && words[0]!.startsWith("-")) throw invalid("argv[0] begins with a dash");
  if (words.some((word) => word.includes("\0"))) throw invalid("command contains a NUL character");
}

/** Absolute, inside; a relative one starts at the workspace. */
export function workingDirectory({ files }: MockSandbox, workdir: string): string {
  const path = files.resolve("/workspace", workdir);
  if (files.isDirectory(path)) return path;
  throw new Fault("WORKDIR_UNUSABLE", "the working directory does not exist in the sandbox, or is none");
}

/** Absent means the default; more than the maximum is refused, as a server does. */
export function effectiveTimeout(timeoutMs: number = TIME_LIMITS.defaultMs): number {
  if (timeoutMs > TIME_LIMITS.largestMs) throw invalid(`timeout is at most ${TIME_LIMITS.largestMs / 1000} s`);
  return timeoutMs;
}
